"""The fast path to plain blocks makes what `block_of` makes, and keeps content as the JSON that identified it."""

from __future__ import annotations

import json
import pickle
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cachecost.base.structs import replace
from cachecost.prompts.blocks import Block, compact, encode_simple, given_block
from cachecost.prompts.exact_json import KINDS, has_content, packed_content, plain_block
from cachecost.prompts.request import block_of
from test_exact_json import ANY_TEXT, VALUES

BREAKPOINT = {"type": "ephemeral"}
TEXTS = ANY_TEXT | st.sampled_from(['"content":"', "", '\\"content\\":\\"'])
CONTENTS = TEXTS | VALUES | st.just([{"type": "text", "text": "a"}, {"type": "image", "source": {}}])
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from([*sorted(KINDS), "image", "document", "server_tool_use"]) | VALUES,
    "text": TEXTS,
    "thinking": TEXTS,
    "tool_use_id": TEXTS,
    "is_error": st.booleans(),
    "input": VALUES,
    "content": CONTENTS,
    "source": VALUES,
    "citations": st.just({"enabled": True}) | VALUES,
    "cache_control": st.just(BREAKPOINT),
}


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    """Objects like blocks, with their fields in any order."""
    names = draw(st.permutations(sorted(FIELDS)))[: draw(st.integers(0, 5))]
    return {name: draw(FIELDS[name]) for name in names}


def facts(block: Block) -> dict[str, str]:
    """All fields. Their text tells NaN from itself no more than from another, and 1 from true."""
    return {name: repr(getattr(block, name)) for name in Block.__struct_fields__}


@given(st.sampled_from(["user", "assistant", "system", ""]), objects(), st.booleans())
def test_a_plain_block_is_what_block_of_makes(role: str, content: dict[str, Any], keep_content: bool) -> None:
    assert facts(plain_block(role, content, keep_content)) == facts(block_of(role, content, keep_content))


@given(objects())
def test_packed_content_is_its_compact_json(content: dict[str, Any]) -> None:
    block = plain_block("user", content)
    packed = packed_content(block)
    assert packed in (None, compact(content))
    assert facts(pickle.loads(pickle.dumps(block))) == facts(block)


def test_a_block_stays_packed_when_its_content_is_asked_for() -> None:
    block = plain_block("user", {"type": "tool_result", "tool_use_id": "t", "content": 'say "hi"'})
    changed = replace(plain_block("user", {"type": "text", "text": "a"}), digest=b"other")
    assert packed_content(block) == b'{"type":"tool_result","tool_use_id":"t","content":"say \\"hi\\""}'
    assert packed_content(changed) is None  # what a change makes no longer follows from the content
    assert block.content == {"type": "tool_result", "tool_use_id": "t", "content": 'say "hi"'}
    assert has_content(block) and has_content(changed) and not has_content(given_block("text", "user", "a", 1))
    assert packed_content(block) is not None


@given(VALUES)
def test_simple_values_are_written_as_python_writes_them(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert encode_simple(value) in (None, text.encode("utf-8", "surrogatepass"))
    assert compact({"": value}) == f'{{"":{text}}}'.encode("utf-8", "surrogatepass")


@given(st.floats() | st.floats(1e-5, 1e-2) | st.floats(1e14, 1e17) | st.integers().map(float))
def test_numbers_with_a_fraction_are_simple_where_both_write_them_alike(value: float) -> None:
    written = encode_simple([value])
    assert written in (None, json.dumps([value]).encode())
    assert (written is None) != (value == 0 or 0.001 <= abs(value) < 1e15)
