"""The fast path through a recording reads what the plain one does, of whole recordings and of damaged ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_logs import logs
from test_call_recording import log_file, recorded, saved, shape, slow_folder

from cachecost.base.errors import InputError
from cachecost.base.limits import DEEPEST
from cachecost.conversations.readers import call_recording as reader

Row = dict[str, Any]
SCALARS = (None, True, -1, 0, 1, 2, 1.0, 1e400, 10**13, 10**30, "", "user", "noon", "2026-01-01", "\ud800", "é")
NESTED: tuple[Any, ...] = (
    *([], {}, [1, 1], [["user", [1]]], [["system", 0, "5m"]], [["messages", 0, 0, "1h"]], {"input_tokens": 7}),
    *({"type": "text", "text": "a", "score": 1e-7}, {"type": "image"}, {"type": "tool_result", "content": "a"}),
)
WRONG = st.sampled_from([*SCALARS, *NESTED])
NAMES = ("block", "role", "content", "call", "head", "timestamp", "first_token_s", "host", "session", "project")
MORE = ("agent", "after", "messages", "breakpoints", "usage", "response", "status", "service", "start_s", "stranger")


def read(path: Path) -> tuple[list[Any], list[str]]:
    """The calls, with what is recorded of each, and the errors."""
    found: list[Any] = []
    try:
        for call in reader.calls(path):
            found.append((shape(call), call.session, call.project, call.agent, call.day, call.line))
    except InputError as error:
        return found, [str(fault) for fault in error.faults]
    return found, []


def read_slowly(path: Path) -> tuple[list[Any], list[str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader.RecordingLines, "read_plain_line", lambda *line: False)
        return read(path)


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """The recording with some fields of its lines changed, and one line twice, elsewhere or cut off."""
    rows = [json.loads(line) for line in data.splitlines()]
    for _ in range(draw(st.integers(0, 3))):
        row = draw(st.sampled_from(rows))
        row[draw(st.sampled_from([*row, *NAMES, *MORE]))] = draw(WRONG)
    lines = [json.dumps(row, ensure_ascii=draw(st.booleans())) for row in rows]
    if draw(st.booleans()):
        lines.insert(draw(st.integers(1, len(lines))), draw(st.sampled_from(lines)))
    written = "\n".join(lines).encode("utf-8", "surrogatepass")
    return written[: draw(st.sampled_from([len(written), len(written), len(written) - 5]))]


@slow_folder
@given(logs(), st.data())
def test_both_ways_read_the_same(tmp_path: Path, rows: list[Row], data: st.DataObject) -> None:
    whole = recorded(log_file(tmp_path, rows))
    path = saved(tmp_path, data.draw(damaged(whole)))
    assert read(path) == read_slowly(path)


HEADER = b'{"format":1,"kind":"calls","content":"keep","name":"n"}\n'
DEEP = b'{"block":1,"role":"user","content":{"type":"tool_use","input":%b}}\n'
EDGES = [
    *(DEEP % (b"[" * deep + b"]" * deep) for deep in (DEEPEST - 3, DEEPEST - 2, DEEPEST - 1)),
    b'{"block":1,"role":"user","content":{"type":"text","text":"\xff"}}\n',
    b'{"block":1,"role":"user","content":{"type":"text","text":"a","text":"b"}}\n',
    b'{"block":1,"role":"user","content":{"type":"tool_use","input":1e5,"n":18446744073709551616}}\n',
    b'{"block":1,"role":"user","content":{"type":"text","text":"a"},"content":7}\n',
    b'{"block":1,"role":"user","content":{"type" : "text", "text":"\\u00e9\\/"}} \r\n',
    b'{"block":1,"role":"user","content":{"type":"text","text":"a"}}}\n',
    b'{"block":1.0,"role":"user","content":{"type":"text","text":"a"}}\n',
]


@pytest.mark.parametrize("line", EDGES)
def test_both_ways_read_the_same_of_edges(tmp_path: Path, line: bytes) -> None:
    call = b'{"head":1,"model":"m"}\n{"call":1,"head":1,"messages":[["user",[1]]]}\n'
    path = saved(tmp_path, HEADER + line + call)
    assert read(path) == read_slowly(path)


def test_most_lines_take_the_fast_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = b'{"block":1,"role":"user","content":{"type":"text","text":"hi"}}\n'
    call = b'{"call":1,"head":1,"timestamp":"2026-01-01T00:00:00Z","messages":[["user",[1]]],"session":"s"}\n'
    monkeypatch.setattr("cachecost.conversations.model.BlockReader.add", None)
    monkeypatch.setattr(reader, "CheckedCall", None)
    assert len(read(saved(tmp_path, HEADER + block + b'{"head":1,"model":"m"}\n' + call))[0]) == 1
