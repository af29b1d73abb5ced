"""Why a read differs from its prediction: too late to be readable, kept alive by others, written before, miscounted."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from test_fidelity import Crude

from bodies import Body, assistant, body, breakpoint_last, marked, text, user
from cachecost.analysis.fidelity.checker import GONE_S, FidelityChecker
from cachecost.conversations.calls import Call
from cachecost.ledger.results import Judgement
from cachecost.prompts.intake import Intake
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import Usage

MARCH = "2026-03-20T10:00:00+00:00"
ASK = user(text(2000, "ask"))
SYSTEM = [marked(text(3000, "system"))]


def judged(
    *rows: tuple[float, Body, Usage], begin: str = MARCH, model: str = "claude-sonnet-4-6", **assumptions: object
) -> list[Judgement]:
    """Judge calls; a row is (seconds after `begin`, body, bill)."""
    intake = Intake(keep_content=True)
    calls = []
    for number, (after, request, bill) in enumerate(rows, 1):
        start = datetime.fromisoformat(begin).timestamp() + after
        at = datetime.fromtimestamp(start, UTC).isoformat()
        calls.append(Call(intake.body({**request, "model": model}), start, timestamp=at, billed=bill, line=number))
    checker = FidelityChecker(RuleBook(assumptions_from(assumptions)), PriceBook.load(), lambda generation: Crude(1.0))
    judgements, not_judged = checker.check_calls("log", calls)
    assert not not_judged
    return judgements


def step(*messages: Any) -> Body:
    return breakpoint_last(body(*messages, system=SYSTEM))


FIRST = step(ASK)
SECOND = step(ASK, assistant(text(300)), user(text(200)))
COLD = Usage(3, 0, 5000)
FELL_BACK = Usage(3, 3000, 2500)
"""The second call read the system prompt alone: the entry of the first one's last message was not there yet."""


def known(rows: list[Judgement]) -> list[tuple[str, bool, str]]:
    return [(one.kind, one.exact, one.cause) for one in rows]


def warmed(elapsed: float, **more: Any) -> Judgement:
    """A first call that tells how long the system prompt is, then a step that falls back to it."""
    alone = body(user(text(700, "else")), system=SYSTEM)
    rows = (-60.0, alone, Usage(700, 0, 3000)), (0.0, FIRST, Usage(3, 3000, 2000)), (elapsed, SECOND, FELL_BACK)
    return judged(*rows, **more)[-1]


@pytest.mark.parametrize(("elapsed", "cause"), [(2.1, "visibility_lag"), (4.9, "visibility_lag"), (5.2, "")])
def test_a_step_soon_after_its_writer_names_the_lag(elapsed: float, cause: str) -> None:
    found = warmed(elapsed)
    assert (found.kind, found.exact, found.cause) == ("hit", False, cause)
    assert found.reason.startswith("another prefix was hit: 5,000 tokens were predicted, 3,000 were read")
    said = f"probable cause: visibility lag, as the longer entry was written {elapsed} s before"
    assert (said in found.reason) is bool(cause)


@pytest.mark.parametrize("day", ["2026-03-12", "2026-04-26"])
def test_the_first_and_the_last_day_of_the_lag(day: str) -> None:
    assert warmed(2.0, begin=f"{day}T10:00:00+00:00").cause == "visibility_lag"


@pytest.mark.parametrize(
    ("day", "model"),
    [("2026-03-11", "claude-sonnet-4-6"), ("2026-04-27", "claude-sonnet-4-6"), ("2026-03-20", "claude-haiku-4-5")],
)
def test_other_days_and_models_have_no_lag(day: str, model: str) -> None:
    assert RuleBook().rules("anthropic", model, date.fromisoformat(day)).visibility_lag is None
    assert RuleBook().rules("bedrock", "claude-sonnet-4-6", date(2026, 3, 20)).visibility_lag is None


def test_a_read_of_what_had_expired_is_a_miss_and_proves_that_it_lives() -> None:
    """491 s after its only recorded use a conversation's five-minute entry was read: it lives on."""
    third = step(ASK, assistant(text(300)), user(text(200)), assistant(text(90)), user(text(110)))
    rows = judged((0, FIRST, COLD), (491, SECOND, Usage(3, 5000, 500)), (700, third, Usage(3, 5500, 200)))
    assert known(rows) == [("cold", True, ""), ("hit", False, ""), ("hit", True, "")]
    assert rows[1].reason == "read 5,000 tokens 3 min after they expired; the call continues a recorded one"


@pytest.mark.parametrize(("elapsed", "after"), [(491, "3 min"), (GONE_S + 600, "7 days")])
def test_a_first_call_may_read_what_others_kept_alive(elapsed: float, after: str) -> None:
    """A static prefix is also used by conversations that nobody recorded, and so is a prompt a week later."""
    other = breakpoint_last(body(user(text(400, "else")), system=SYSTEM))
    found = judged(
        (0, FIRST, COLD),
        (elapsed, other if elapsed < GONE_S else SECOND, Usage(403, 3000 if elapsed < GONE_S else 5000)),
    )[1]
    assert found.kind == "unknown"
    assert f"{after} after they expired: an unrecorded call may have kept them alive" in found.reason


def test_a_call_that_continues_another_reads_nothing_unrecorded() -> None:
    """Its read ends nowhere that a call wrote. Where all calls before it had been made once already, it may."""
    rows = judged((0, FIRST, COLD), (60, SECOND, Usage(3, 5500)))
    assert known(rows)[1] == ("hit", False, "")
    assert rows[1].reason.endswith(
        "that no recorded call can have written; predicted 5,000; the call continues a recorded one"
    )
    again = judged((0, FIRST, Usage(3, 5000)), (60, SECOND, Usage(3, 5500)))
    assert [kind for kind, *_ in known(again)] == ["unknown", "unknown"]
    uncached = body(user(text(2000, "ask")))  # no bill of it shows whether somebody had sent it before
    late = breakpoint_last(body(user(text(2000, "ask")), assistant(text(3000)), user(text(500))))
    rows = judged((0, uncached, Usage(2000)), (60, late, Usage(3, 5500)))
    assert [kind for kind, *_ in known(rows)] == ["cold", "unknown"]


def test_a_read_of_what_lives_is_no_unknown() -> None:
    rows = judged((0, FIRST, COLD), (299, SECOND, Usage(3, 5000, 500)))
    assert known(rows)[1] == ("hit", True, "")


def test_a_warm_start_is_named_and_the_calls_after_it_are_predicted_from_it() -> None:
    """The first call reads back to a place where it has no breakpoint; the second one forks from there."""
    ask = user(text(3000, "ask"))
    early = breakpoint_last(body(ask, assistant(text(300)), user(text(200))))
    fork = breakpoint_last(body(ask, assistant(text(300, "other")), user(text(250))))
    rows = judged((0, early, Usage(3, 3000, 500)), (9, fork, Usage(3, 3000, 550)))
    assert known(rows)[0] == ("unknown", False, "warm_start")
    assert rows[1].predicted.read == 3000
    cold = judged((0, early, Usage(3, 3000, 500)), (9, fork, Usage(3, 3000, 550)), warm_start="cold")
    assert known(cold)[0] == ("unknown", False, "") and cold[1].predicted.read == 0


def test_the_same_prefix_a_few_tokens_off_is_not_called_another_one() -> None:
    """No bill tells how long the system prompt is: its estimate is 7 tokens off, and no other entry is nearer."""
    other = body(user(text(700, "else")), system=SYSTEM)
    rows = judged((0, FIRST, Usage(0, 0, 5000)), (20, other, Usage(700, 3007)))
    assert (rows[1].kind, rows[1].exact) == ("hit", False)
    assert rows[1].reason == "the same prefix, -7 tokens off; its length is an estimate: no other bill gives it"
