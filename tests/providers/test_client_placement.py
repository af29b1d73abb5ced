"""How many messages have a breakpoint, by version of the client."""

import pytest

from cachecost.providers.clients.settings import client_settings, message_breakpoints


@pytest.mark.parametrize(
    ("version", "count"),
    [("0.2.9", 2), ("1.0.8", 2), ("2.1.58", 2), ("2.1.59", 1), ("2.1.330", 1), (None, 1), ("", 1)],
)
def test_by_version(version: str | None, count: int) -> None:
    assert message_breakpoints(version) == count


def test_every_row_has_a_source() -> None:
    assert {row.source for row in client_settings().message_breakpoints} <= set(client_settings().sources)
