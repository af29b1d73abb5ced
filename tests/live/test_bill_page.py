"""The bill: what it says in a terminal and as JSON."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import Any

import pytest
from rich.cells import cell_len
from simulated_calls import Served, an_hour, automatic, first_text_only, refusable, system_only, text_body, uncached

from cachecost.base.formatting import dollars
from cachecost.live.server.bill import ServerBill, bill_json, bill_of, bill_text, facts, print_bill, verdict
from cachecost.providers.usage import ZERO, Usage


@pytest.fixture(scope="module")
def served() -> Served:
    """Five conversations in two workspaces, each marked in its own way, a refused call, and a body that is none."""
    made = Served()
    made.loop("Fix the failing test", automatic)
    made.loop("Explain the repository", first_text_only)
    made.loop("Nothing marked", uncached, workspace="w2")
    made.loop("Summarise <script>alert(1)</script> & \x1b[31mnews", system_only, workspace="w2")
    made.loop("Over an hour", an_hour, workspace="w2")
    made.call(dict(refusable()), workspace="w2")
    made.call({"model": "m"}, workspace="w2")
    made.meter.notes = lambda: ("a note of the server",)
    return made


@pytest.fixture(scope="module")
def bill(served: Served) -> ServerBill:
    return bill_of(served.meter)


# ----------------------------------------------------------------------------------------------- the figures


def test_the_parts_add_up_to_the_whole(bill: ServerBill) -> None:
    for shares in (bill.workspaces, bill.conversations, bill.models):
        assert sum((share.cost.total for share in shares), ZERO) == bill.total.cost.total
        assert sum((share.usage for share in shares), Usage()) == bill.total.usage
        assert sum(share.calls for share in shares) == bill.total.calls == 26
        assert sum(share.unread.tokens for share in shares) == bill.total.unread.tokens
    assert bill.total.refused == 1
    assert [share.name for share in bill.workspaces] == ["w1", "w2"]


def test_without_caching_every_token_of_input_has_the_price_of_input(bill: ServerBill) -> None:
    usage = bill.total.usage
    assert bill.total.uncached == (usage.total_input * Decimal(3) + usage.output_tokens * Decimal(15)).scaleb(-6)
    assert bill.total.saved_usd == bill.total.uncached - bill.total.cost.total > 0
    (unmarked_talk,) = (share for share in bill.conversations if "Nothing marked" in share.name)
    assert unmarked_talk.saved_usd == 0


def test_what_the_last_call_of_a_conversation_wrote_is_not_read_yet(served: Served, bill: ServerBill) -> None:
    row = next(row for row in reversed(served.meter.rows) if row.usage.write_1h)
    assert served.meter.unread.of(row.call).tokens == row.usage.write_1h
    assert bill.total.unread.paid > bill.total.unread.extra > 0


def test_a_loop_left_uncached_is_named_with_its_reason(bill: ServerBill) -> None:
    told = {loop.conversation.partition(": ")[2][:12]: loop.why for loop in bill.loops}
    assert told == {
        "Explain the ": "no breakpoint on tool results; the last breakpoint is on the first user text",
        "Nothing mark": "no breakpoint is set (no cache_control in its calls)",
        "Summarise <s": "no breakpoint on tool results; the last breakpoint is on the system prompt",
    }


def test_the_whole_of_an_unmarked_loop_was_paid_again(bill: ServerBill) -> None:
    loop = next(loop for loop in bill.loops if "Nothing" in loop.conversation)
    assert loop.again == loop.had_been_sent
    assert loop.cost == (loop.again * Decimal(3)).scaleb(-6)
    assert 0 < loop.avoidable < loop.cost  # what breakpoints would have read is not free, and is written once
    assert loop.sentence.startswith("w2: Nothing marked please please")
    assert (
        "4 later calls paid the full price again for" in loop.sentence
        and "100% of what had been sent before" in loop.sentence
    )


def test_one_later_call_and_a_retry_are_no_loop() -> None:
    made = Served()
    made.loop("Once", uncached, steps=1)
    made.call(text_body("Hi " * 3000))
    made.call(text_body("Hi " * 3000), retry=1)
    assert bill_of(made.meter).loops == ()


def test_a_prompt_too_short_to_be_cached_is_told_so() -> None:
    made = Served()
    messages: list[Any] = [{"role": "user", "content": "Hi"}]
    for _ in range(3):
        made.call(automatic({**text_body(""), "messages": list(messages)}))
        messages += [{"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "Go on"}]
    (loop,) = bill_of(made.meter).loops
    assert loop.why == "its prompts are below the minimum of 1,024 tokens that this model caches"


def stuck(body: dict[str, Any]) -> dict[str, Any]:
    """A client that breakpoints the first result of a tool, and no later one."""
    messages = [dict(message) for message in body["messages"]]
    if len(messages) > 2:
        messages[2]["content"] = [{**messages[2]["content"][0], "cache_control": {"type": "ephemeral"}}]
    return {**body, "messages": messages}


def test_a_breakpoint_that_does_not_move_is_told() -> None:
    made = Served()
    made.loop("Go", stuck, steps=6)
    (loop,) = bill_of(made.meter).loops
    assert loop.why == "the last breakpoint is on a tool_result, with messages after it"


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (["<system-reminder>x</system-reminder>", "Fix  it\nnow"], "Fix it now"),
        (["<only>"], "<only>"),
        (["a\x1b[31mb\u202ec"], "a [31mb c"),
        (["x" * 48], "x" * 48),
        (["x" * 49], "x" * 47 + "…"),
        ([""], "(no text)"),
    ],
)
def test_a_conversation_is_named_by_what_a_person_wrote_first(texts: list[str], told: str) -> None:
    made = Served()
    blocks = [{"type": "text", "text": text} for text in texts]
    made.call({**text_body(""), "messages": [{"role": "user", "content": blocks}]})
    assert [share.name for share in bill_of(made.meter).conversations] == [told]


def test_the_facts_name_what_was_refused_and_what_the_server_notes(bill: ServerBill) -> None:
    words = "messages.0.content.0.text: cache_control cannot be set for empty text blocks"
    assert facts(bill)[-3:] == [
        f"1 call refused at no charge: {words}",
        "1 invalid request refused with status 400 and not billed.",
        "a note of the server.",
    ]
    assert verdict(bill).startswith(f"{dollars(bill.total.cost.total)} for 26 calls, ")
    assert verdict(bill).endswith(f" less than without caching ({dollars(bill.total.uncached)}).")


# ---------------------------------------------------------------------------------------------- the terminal


@pytest.mark.parametrize("width", [80, 120])
def test_nothing_is_wider_than_the_terminal(bill: ServerBill, width: int) -> None:
    lines = bill_text(bill, width).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert any(line.split()[:2] == ["conversation", "calls"] for line in lines)
    assert sum("…" in line for line in lines) >= 5
    header = next(line for line in lines if line.strip().startswith("conversation"))
    assert header.endswith("cost")
    assert ("without caching" in header) == (width == 120)


def test_a_pipe_gets_no_colours_and_ascii_where_it_must(served: Served) -> None:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding="ascii") as stream:
        print_bill(served.meter, stream)
        stream.flush()
        text = raw.getvalue().decode("ascii")
    assert "\x1b" not in text and "3 conversations left uncached" in text


def test_colours_are_for_terminals_that_want_them(bill: ServerBill) -> None:
    assert "\x1b[1;31m3 conversations left uncached" in bill_text(bill, colours="standard")
    assert "\x1b" not in bill_text(bill)


def test_a_bill_without_calls_is_one_line() -> None:
    page = io.StringIO()
    print_bill(Served().meter, page)
    assert page.getvalue() == "No calls yet.\n"


# ------------------------------------------------------------------------------------------------------- the JSON


def test_the_json_has_what_the_terminal_says(bill: ServerBill) -> None:
    told = json.loads(json.dumps(bill_json(bill)))
    assert (told["verdict"], told["facts"]) == (verdict(bill), facts(bill))
    for name in ("workspaces", "models", "conversations"):
        assert sum(Decimal(one["cost_usd"]) for one in told[name]) == Decimal(told["total"]["cost_usd"])
    assert [one["why"] for one in told["uncached_loops"]] == [loop.why for loop in bill.loops]
