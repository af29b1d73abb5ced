"""Random request logs with every feature that a recording of calls must carry, and words that must not get out."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

Row = dict[str, Any]

SECRETS = ("zebra", "quagga", "okapi", "tapir", "日本", "😀", "toolu", "narwhal", "wombat", "gnu", "ibex", "lynx")
DEFERRED = "gnu"
AT = "2026-03-07T10:"

LONG = "okapi 7 " * 900
texts = st.sampled_from(["zebra", "quagga \n okapi", "tapir 日本 😀", LONG, LONG + "!", LONG + "?", ""])
breakpoints: st.SearchStrategy[Any] = st.sampled_from(
    [None, None, None, None, {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}]
)


def rarely(value: Any, *others: Any) -> st.SearchStrategy[Any]:
    """One of the others, and `value` in one of ten."""
    return st.integers(0, 9).flatmap(lambda drawn: st.just(value) if drawn == 7 else st.sampled_from(others))


def marked(blocks: st.SearchStrategy[Row]) -> st.SearchStrategy[Row]:
    """The blocks, some with a breakpoint."""
    return st.builds(
        lambda block, breakpoint: {**block, "cache_control": breakpoint} if breakpoint else block, blocks, breakpoints
    )


text_blocks = texts.map(lambda text: {"type": "text", "text": text})
images = st.just({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "wombat"}})
documents = st.just({"type": "document", "source": {"type": "text", "data": "okapi"}, "citations": {"enabled": True}})
ids = st.sampled_from(["toolu_1", "toolu_2"])
uses = st.builds(lambda id_, text: {"type": "tool_use", "id": id_, "name": "ibex", "input": {"lynx": text}}, ids, texts)
served = st.builds(
    lambda text: {"type": "web_search_tool_result", "tool_use_id": "toolu_3", "content": [{"title": text}]}, texts
)
references = st.just({"type": "tool_reference", "tool_name": DEFERRED})
results = st.builds(
    lambda id_, content, error: {"type": "tool_result", "tool_use_id": id_, "content": content, **error},
    ids,
    st.one_of(texts, st.lists(st.one_of(marked(text_blocks), images, references), max_size=2)),
    st.sampled_from([{}, {"is_error": True}]),
)
thoughts = st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": "narwhal" * 60}, texts)
replies = st.one_of(marked(text_blocks), marked(uses), marked(thoughts), served)
inputs = st.one_of(marked(text_blocks), marked(results), marked(results), images, documents)
messages = st.one_of(
    st.builds(lambda blocks: {"role": "assistant", "content": blocks}, st.lists(replies, max_size=3)),
    st.builds(lambda blocks: {"role": "user", "content": blocks}, st.lists(inputs, max_size=3)),
    st.builds(lambda role, text: {"role": role, "content": text}, st.sampled_from(["user", "system"]), texts),
)

schemas = st.sampled_from(
    [None, {}, {"properties": {"wombat": {"type": "lynx"}}}, {"required": ["lynx"], "name": "ibex"}]
)
formats = schemas.map(lambda schema: {"type": "json_schema", "schema": schema, "title": "wombat"})
tools = st.lists(
    st.one_of(
        marked(st.builds(lambda text: {"name": "ibex", "description": text, "input_schema": {"lynx": 1}}, texts)),
        marked(st.just({"type": "web_search_20250305", "name": "web_search"})),
        texts.map(lambda text: {"name": DEFERRED, "description": text, "input_schema": {}, "defer_loading": True}),
    ),
    max_size=3,
)
refused_tools = st.just(
    [{"name": DEFERRED, "input_schema": {}, "defer_loading": True, "cache_control": {"type": "ephemeral"}}]
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "tools": rarely(refused_tools, tools).flatmap(lambda chosen: chosen),
    "system": st.one_of(texts, st.lists(marked(text_blocks), max_size=2)),
    "tool_choice": st.sampled_from(
        [{"type": "auto"}, {"type": "any"}, {"type": "tool", "name": "ibex"}, {"type": "tool", "name": "lynx"}]
    ),
    "thinking": st.sampled_from(
        [
            {"type": "enabled", "budget_tokens": 1024},
            {"type": "adaptive", "display": "omitted"},
            {"type": "disabled"},
            {"type": "adaptive", "wombat": "zebra"},
        ]
    ),
    "output_config": st.one_of(
        st.sampled_from([{"effort": "high"}, {"effort": "low"}, {"effort": "quagga"}]),
        formats.map(lambda wanted: {"format": wanted}),
    ),
    "output_format": formats,
    "speed": rarely("fast", "standard"),
    "container": st.sampled_from(
        ["wombat", {"skills": [{"type": "custom", "skill_id": "wombat", "version": "latest"}]}]
    ),
    "inference_geo": rarely("us", "global"),
    "cache_control": breakpoints,
    "metadata": st.just({"user_id": "wombat"}),
}
fields = st.fixed_dictionaries({"max_tokens": st.sampled_from([0, 64])}, optional=FIELDS)
models = rarely("claude-opus-46", "claude-opus-4-6", "claude-sonnet-4-5", "claude-sonnet-4-5-20250929")
usages = st.fixed_dictionaries(
    {"input_tokens": st.integers(0, 9), "output_tokens": st.integers(0, 9)},
    optional={
        "cache_read_input_tokens": st.integers(0, 9000),
        "cache_creation_input_tokens": st.just(30),
        "cache_creation": st.just({"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20}),
        "iterations": st.lists(st.just({"type": "compaction", "input_tokens": 3, "output_tokens": 4}), max_size=2),
    },
)
answers = st.fixed_dictionaries({"content": st.lists(replies, max_size=2)}, optional={"usage": usages})
circumstances = st.fixed_dictionaries(
    {},
    optional={
        "usage": usages,
        "response": answers,
        "response_content": st.lists(replies, max_size=2),
        "first_token_s": st.sampled_from([0, 1, 2.5]),
        "host": rarely("bedrock", "anthropic"),
        "workspace": rarely("wombat", "okapi", ""),
        "status": rarely(529, 200),
        "service": st.sampled_from(["batch", "standard"]),
        "source": st.just("lynx"),
    },
)


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    """Rows of a log whose calls go on from one another, as agents' calls do."""
    rows: list[Row] = []
    second = 0
    for _ in range(draw(st.integers(1, 8))):
        before = draw(st.sampled_from(rows))["request"] if rows and draw(rarely(False, True)) else {"messages": []}
        told = before["messages"]
        kept = told[: draw(rarely(len(told) // 2, len(told)))]
        head = {name: value for name, value in before.items() if name != "messages"}
        if not head or not draw(st.integers(0, 3)):
            head = {"model": draw(models), **draw(fields)}
        second += draw(st.sampled_from([0, 1, 3, 29]))
        timed = {"timestamp": f"{AT}{second // 60:02}:{second % 60:02}Z"} if draw(st.booleans()) else {}
        request = {**head, "messages": kept + draw(st.lists(messages, max_size=3))}
        rows.append({**timed, "request": request, **draw(circumstances)})
    return rows


def lines(rows: list[Row]) -> bytes:
    """The log as a file."""
    return b"".join(json.dumps(row, ensure_ascii=True).encode() + b"\n" for row in rows)
