"""The content kind of a text: rows on both sides of each share."""

import pytest

from cachecost.prompts.wire import block_of
from cachecost.tokens.content import parts_of, prose_of
from cachecost.tokens.prose import kind_of


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "text"),
        ("x" * 96 + "1" * 4, "text"),
        ("x" * 95 + "1" * 5, "data"),
        ("x" * 97 + ";" * 3, "text"),
        ("x" * 96 + ";" * 4, "code"),
        ("{" * 12 + "x" * 78 + " the  of ", "text"),
        ("{" * 12 + "x" * 139 + " the  of  to ", "code"),
        ("Die Würde des Menschen ist unantastbar.", "text"),
        ("2026-03-07T10:15:00Z 200 GET 1532", "data"),
        ("let x = foo(bar[i]) + BAZ_QUX;", "code"),
    ],
)
def test_kind_of_a_text(text: str, kind: str) -> None:
    assert kind_of((text,)) == kind


def test_texts_are_judged_together() -> None:
    assert kind_of(("x" * 50, "y" * 45, "1" * 5)) == "data"
    assert kind_of(()) == "text"


def test_a_tool_definition_is_a_kind_of_its_own() -> None:
    tool = block_of("", {"name": "a", "input_schema": {"enum": [1, 2, 3, 4, 5, 6, 7, 8, 9]}})
    assert tool.content is not None
    assert prose_of(tool.kind, parts_of(tool.kind, tool.content)) == "tools"
