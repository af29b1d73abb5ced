"""Keys are told apart and never shown."""

from __future__ import annotations

from cachecost.live.keys import secrets_in, without, workspace_of

KEY = "sk-ant-api03-planted/key"


def test_a_key_names_a_workspace_and_cannot_be_read_from_it() -> None:
    one, other = workspace_of({"x-api-key": KEY}), workspace_of({"x-api-key": KEY + "2"})
    assert one != other
    assert len(one) == 8 and one not in KEY
    assert workspace_of({"authorization": f"Bearer {KEY}"}) == one
    assert workspace_of({}) == ""


def test_secrets_are_found_in_headers_and_taken_out_of_texts() -> None:
    secrets = secrets_in({"authorization": f"Bearer {KEY}", "x-api-key": KEY, "cookie": "short", "accept": "a" * 20})
    assert secrets == [KEY]
    escaped = KEY.replace("/", "\\/")
    assert without(f'{{"a": "{KEY}", "b": "x{escaped}y"}}'.encode(), secrets) == b'{"a": "[key]", "b": "x[key]y"}'
