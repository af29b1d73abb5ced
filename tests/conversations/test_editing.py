"""Recordings cut and put together: what is said of them, and that what stays is as it was."""

from __future__ import annotations

import json
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_logs import lines, logs
from shapes import whole as shape_of

from cachecost.base.errors import InputError
from cachecost.base.structs import replace
from cachecost.conversations import call_recording
from cachecost.conversations import model as recording
from cachecost.conversations.call_recording import Title
from cachecost.conversations.calls import Call
from cachecost.conversations.editing.cutting import (
    CallSelection,
    concat,
    content_of,
    cut,
    cut_conversation,
    parse_ranges,
)
from cachecost.conversations.model import BlockWriter, ContentFree, Conversation, Human, Inquiry, Reply, Results
from cachecost.conversations.readers import call_recording as calls
from cachecost.conversations.readers import request_log
from cachecost.conversations.readers.detect import read_calls
from cachecost.prompts.blocks import Part
from cachecost.prompts.request import block_of, text_block


def row(*texts: str, second: int | None = None, **fields: Any) -> dict[str, Any]:
    messages = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    body = {"model": "claude-opus-4-6", **fields.pop("body", {}), "messages": messages}
    timed = {} if second is None else {"timestamp": f"2026-03-07T10:00:{second:02}Z"}
    return {**timed, "request": body, **fields}


def saved(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_bytes(lines(list(rows)))
    return path


def read(folder: Path, *rows: dict[str, Any], digest: bytes = b"") -> list[Call]:
    """The calls; with `digest`, as a recording without content under that key has them."""
    told = request_log.calls(saved(folder / "log.jsonl", *rows))
    if not digest:
        return list(told)
    call_recording.write(Title("n"), told, folder / "digest.jsonl", BlockWriter(ContentFree(digest)))
    return list(calls.calls(folder / "digest.jsonl"))


def written(told: Iterable[Call]) -> bytes:
    """The calls as a recording: equal where the calls are."""
    stream = BytesIO()
    call_recording.write(Title("n"), told, stream)
    return stream.getvalue()


TOOL = {"name": "x", "input_schema": {}}


def conversation(*texts: str, model: str = "claude-opus-4-6") -> Conversation:
    """Two turns, the first with a tool that asks something."""
    use = block_of("assistant", {"type": "tool_use", "id": "t", "name": "x", "input": {}})
    result = block_of("user", {"type": "tool_result", "tool_use_id": "t", "content": "r"})
    asked = Inquiry(3.0, text_block("user", "?"), text_block("assistant", "yes"))
    said = iter(texts)
    return Conversation(
        "n",
        (
            Human(1.0, (text_block("user", next(said, "hi")),)),
            Reply(2.0, (use,), 0.5, 7),
            asked,
            Results(4.0, (result,)),
            Reply(4.0, (text_block("assistant", next(said, "done")),)),
            Human(9.0, (text_block("user", "more"),)),
            Reply(10.0, (text_block("assistant", "no"),)),
        ),
        model,
        Part((block_of("", TOOL),)),
    )


# ---------------------------------------------------------------------------------------------- cut


@pytest.mark.parametrize(
    ("text", "told"),
    [("7", ((7, 7),)), ("10-20", ((10, 20),)), ("10-", ((10, None),)), ("1-3, 7", ((1, 3), (7, 7)))],
)
def test_ranges_are_read(text: str, told: Any) -> None:
    assert parse_ranges(text) == told


@pytest.mark.parametrize("text", ["", "a", "-3", "1-b", "0", "0-3", "5-4", "1,,2", "1 2", "²"])
def test_what_is_no_range_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="expected numbers"):
        parse_ranges(text)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(logs(), st.data())
def test_a_cut_holds_the_calls_as_they_were(tmp_path: Path, rows: list[dict[str, Any]], data: st.DataObject) -> None:
    path = saved(tmp_path / "log.jsonl", *rows)
    first = data.draw(st.integers(1, len(rows)))
    cutting = cut(path, tmp_path / "out.jsonl", CallSelection(((first, None),)))
    assert (cutting.calls, cutting.of) == (len(rows) - first + 1, len(rows))
    told = [call for place, call in enumerate(read_calls(path), 1) if (call.number or place) >= first]
    assert written(calls.calls(tmp_path / "out.jsonl")) == written(told)


CUTS = [
    (CallSelection(((2, 3),)), "23"),
    (CallSelection(((1, 1), (4, None))), "145"),
    (CallSelection(start=1772877602.0), "2345"),
    (CallSelection(end=1772877602.0), "1"),
    (CallSelection(start=1772877602.0, end=1772877604.0), "23"),
    (CallSelection(session="b"), "24"),
    (CallSelection(((1, 3),), session="b"), "2"),
]


@pytest.mark.parametrize(("wish", "kept"), CUTS)
def test_calls_are_cut_by_number_time_and_session(tmp_path: Path, wish: CallSelection, kept: str) -> None:
    rows = [row(str(n), second=n, session="ab"[n % 2 == 0]) for n in range(1, 6)]
    cut(saved(tmp_path / "log.jsonl", *rows), tmp_path / "out.jsonl", wish)
    told = calls.calls(tmp_path / "out.jsonl")
    assert "".join(call.request.thread.messages()[0].blocks[0].content["text"] for call in told) == kept  # type: ignore[index]


REFUSED = [
    (CallSelection(((9, None),)), "{log} no call matches; the recording has 2"),
    (CallSelection(session="man"), "{log} no call has session 'man' (did you mean 'main'?)"),
    (CallSelection(start=0.0), "{log}:2 this call has no timestamp: cut by calls or session"),
]


@pytest.mark.parametrize(("wish", "why"), REFUSED)
def test_an_empty_cut_is_refused_and_nothing_is_written(tmp_path: Path, wish: CallSelection, why: str) -> None:
    log = saved(tmp_path / "log.jsonl", row("a", second=1, session="main"), row("b"))
    with pytest.raises(InputError) as error:
        cut(log, tmp_path / "out.jsonl", wish)
    assert str(error.value) == why.format(log=log)
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


def test_a_session_that_no_call_names_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no call has session 'x'; no call has a session"):
        cut(saved(tmp_path / "log.jsonl", row("a")), tmp_path / "out.jsonl", CallSelection(session="x"))


def test_damage_leaves_nothing_behind(tmp_path: Path) -> None:
    log = saved(tmp_path / "log.jsonl", row("a"), row("b"), {"request": {"model": 1, "messages": []}})
    with pytest.raises(InputError, match=r"log\.jsonl:3 model: expected a model id; got 1"):
        cut(log, tmp_path / "out.jsonl", CallSelection(((1, 1),)))
    assert not (tmp_path / "out.jsonl").exists()


def test_a_content_free_recording_keeps_its_digests_and_says_so(tmp_path: Path) -> None:
    was = read(tmp_path, row("a", workspace="w"), row("b"), digest=b"key")
    path, out = tmp_path / "digest.jsonl", tmp_path / "out.jsonl"
    cut(path, out, CallSelection(((1, 1),)))
    assert content_of(out) == "digest" and calls.title(out) == Title("n")
    assert written(calls.calls(out)) == written(was[:1])
    concat([path], tmp_path / "all.jsonl")
    assert (tmp_path / "all.jsonl").read_bytes() == path.read_bytes().replace(b'"name":"n"', b'"name":"all"')
    concat([path, saved(tmp_path / "log.jsonl", row("c"))], tmp_path / "both.jsonl")
    assert content_of(tmp_path / "both.jsonl") == "keep"


def test_nothing_is_written_over_itself(tmp_path: Path) -> None:
    log = saved(tmp_path / "log.jsonl", row("a"))
    for edit in (lambda: cut(log, log, CallSelection(((1, 1),))), lambda: concat([log], log)):
        with pytest.raises(InputError, match="would overwrite itself: choose another place"):
            edit()


def test_a_conversation_is_cut_with_what_leads_to_its_calls(tmp_path: Path) -> None:
    whole = conversation()
    kinds = lambda wish: [type(event).__name__ for event in cut_conversation(whole, wish).events]  # noqa: E731
    assert kinds(CallSelection(((1, 1),))) == ["Human", "Reply"]
    assert kinds(CallSelection(((1, 2),))) == ["Human", "Reply", "Inquiry", "Results", "Reply"]
    assert kinds(CallSelection(((3, None),))) == ["Human", "Reply"]
    assert kinds(CallSelection(end=4.0)) == ["Human", "Reply", "Inquiry"]
    path, out = tmp_path / "talk.jsonl", tmp_path / "out.jsonl"
    recording.write(whole, path)
    assert cut(path, out, CallSelection(((3, 3),))).of == 3
    assert shape_of(recording.read(out)) == shape_of(cut_conversation(whole, CallSelection(((3, 3),))))
    said: list[str] = []
    cut(path, out, CallSelection(start=4.0), warn=said.append)
    assert said == [f"{path}: the result begins with tool results whose tool calls are not in it"]
    for wish, why in (
        (CallSelection(((4, 4),)), "no call matches; the conversation has 3"),
        (CallSelection(session="x"), "without sessions"),
    ):
        with pytest.raises(InputError, match=why):
            cut(path, out, wish)


# ------------------------------------------------------------------------------------------- concat


def texts(path: Path) -> str:
    told = calls.calls(path)
    return "".join(call.request.thread.messages()[0].blocks[0].content["text"] for call in told)  # type: ignore[index]


def test_calls_are_put_in_the_order_of_their_times(tmp_path: Path) -> None:
    a = saved(tmp_path / "a.jsonl", row("a", second=1), row("b", second=5), row("c", second=4))
    b = saved(tmp_path / "b.jsonl", row("d", second=2), row("e", second=5), row("f", second=9))
    said: list[str] = []
    assert concat([b, a], tmp_path / "out.jsonl", warn=said.append).calls == 6
    assert texts(tmp_path / "out.jsonl") == "adcebf" and said == []


def test_without_times_the_order_is_as_given(tmp_path: Path) -> None:
    a = saved(tmp_path / "a.jsonl", row("a", second=1), row("b"))
    b = saved(tmp_path / "b.jsonl", row("c", second=0))
    said: list[str] = []
    concat([a, b], tmp_path / "out.jsonl", warn=said.append)
    assert texts(tmp_path / "out.jsonl") == "abc"
    assert said == ["some calls have no timestamp: recordings are joined in the order given"]


def test_recordings_without_times_do_not_run_at_once(tmp_path: Path) -> None:
    told = [
        replace(call, start=start) for call, start in zip(read(tmp_path, row("a"), row("b")), (7.0, 20.0), strict=True)
    ]
    call_recording.write(Title("late"), told, tmp_path / "late.jsonl")
    a = saved(tmp_path / "a.jsonl", row("c"), row("d"))
    concat([a, tmp_path / "late.jsonl", a], tmp_path / "out.jsonl")
    assert [call.start for call in calls.calls(tmp_path / "out.jsonl")] == [0, 2, 4, 17, 19, 21]
    assert (tmp_path / "out.jsonl").read_text().count("start_s") == 1


def test_pauses_of_untimed_calls_stay_in_a_cut(tmp_path: Path) -> None:
    a = read(tmp_path, row("a"), row("b"))
    b = [a[0], replace(a[1], start=9.0)]
    call_recording.write(Title("n"), [*b, replace(a[0], start=11.0)], tmp_path / "b.jsonl")
    cut(tmp_path / "b.jsonl", tmp_path / "out.jsonl", CallSelection(((2, 3),)))
    assert [call.start for call in calls.calls(tmp_path / "out.jsonl")] == [9.0, 11.0]


def test_what_two_recordings_share_is_written_once(tmp_path: Path) -> None:
    a = saved(tmp_path / "a.jsonl", row("q", "r", second=1))
    b = saved(tmp_path / "b.jsonl", row("q", "r", "s", second=2))
    concat([a, b], tmp_path / "out.jsonl")
    told = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert told[-1] == {
        "call": 2,
        "head": 1,
        "timestamp": "2026-03-07T10:00:02Z",
        "after": [1, 2],
        "messages": [["user", [3]]],
    }


def test_sources_and_licences_are_put_together(tmp_path: Path) -> None:
    for name, source in (("a", "here"), ("b", "there"), ("c", "here")):
        call_recording.write(Title(name, source, "MIT"), read(tmp_path, row("q")), tmp_path / f"{name}.jsonl")
    concat([tmp_path / f"{name}.jsonl" for name in "abc"], tmp_path / "out.jsonl")
    assert calls.title(tmp_path / "out.jsonl") == Title("out", "here; there", "MIT")


def test_a_conversation_has_no_calls_to_put_together(tmp_path: Path) -> None:
    recording.write(conversation(), tmp_path / "talk.jsonl")
    with pytest.raises(InputError, match="expected recorded calls; got a conversation"):
        concat([tmp_path / "talk.jsonl"], tmp_path / "out.jsonl")
