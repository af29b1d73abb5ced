"""What conversations share behind what differs: found by explain with the dollars of the other order, and by lint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from decimal import Decimal
from typing import Any

import pytest
from loops import EPHEMERAL, Body, Sending, calls_of, explained, naive_cost, words

from cachecost.analysis.lint import RequestLoader, lint_log
from cachecost.conversations.calls import Call
from cachecost.providers.rules import RuleBook

HOUR = {"type": "ephemeral", "ttl": "1h"}
RULES, DOCUMENT, MORE = words("rule", 900), words("document", 900), words("more", 200)
TOOLS = [{"name": "tool_1", "description": words("tool", 40), "input_schema": {"type": "object"}}]
BRIEF = "Be brief."
Blocks = list[Body]


def text(content: str, breakpoint: Body | None = None) -> Body:
    return {"type": "text", "text": content} | ({"cache_control": breakpoint} if breakpoint else {})


def shared(content: str) -> Body:
    return text(content, EPHEMERAL)


def user(number: int) -> str:
    return f"User: {words(f'name of {number}', 6)} account {number}."


def question(number: int) -> str:
    return f"Question {words(f'q {number}', 20)}?"


def one_shots(
    blocks: Callable[[int], tuple[Blocks, Blocks]], calls: int = 5, gap: float = 30, **fields: Any
) -> list[Sending]:
    """Conversations of one call each; `blocks` are the system prompt and the first message."""
    sendings = []
    for number in range(calls):
        system, message = blocks(number)
        body = {"model": "claude-opus-5", "max_tokens": 100, "tools": TOOLS, "system": system}
        body |= {"messages": [{"role": "user", "content": message}], **fields}
        sendings.append(Sending(deepcopy(body), 1000.0 + gap * number))
    return sendings


def asked(system: Callable[[int], Blocks]) -> Callable[[int], tuple[Blocks, Blocks]]:
    return lambda number: (system(number), [text(question(number))])


def about(message: Callable[[int], Blocks]) -> Callable[[int], tuple[Blocks, Blocks]]:
    return lambda number: ([text(BRIEF)], message(number))


def document(breakpoint: Body | None = None) -> Body:
    source = {"type": "text", "media_type": "text/plain", "data": DOCUMENT}
    return {"type": "document", "source": source} | ({"cache_control": breakpoint} if breakpoint else {})


RIGHT = one_shots(asked(lambda number: [shared(RULES), text(user(number))]))
ORDERS: dict[str, tuple[str, str, list[Sending], list[Sending]]] = {
    "a user's line before the rules": (
        "CC110",
        "system.0",
        one_shots(asked(lambda number: [text(user(number)), shared(RULES)])),
        RIGHT,
    ),
    "for an hour": (
        "CC110",
        "system.0",
        one_shots(asked(lambda number: [text(user(number)), text(RULES, HOUR)])),
        one_shots(asked(lambda number: [text(RULES, HOUR), text(user(number))])),
    ),
    "without a breakpoint": (
        "CC110",
        "system.0",
        one_shots(asked(lambda number: [text(user(number)), text(RULES)])),
        RIGHT,
    ),
    "with automatic caching": (
        "CC110",
        "system.0",
        one_shots(asked(lambda number: [text(user(number)), text(RULES)]), cache_control=EPHEMERAL),
        RIGHT,
    ),
    "a line and a clock between": (
        "CC110",
        "system.0",
        one_shots(asked(lambda n: [text(user(n)), text(RULES), text(f"12:0{n} {words(f'at {n}', 9)}"), shared(MORE)])),
        one_shots(asked(lambda n: [text(RULES), shared(MORE), text(user(n)), text(f"12:0{n} {words(f'at {n}', 9)}")])),
    ),
    "a question before a text": (
        "CC120",
        "messages.0.content.0",
        one_shots(about(lambda number: [text(question(number)), shared(DOCUMENT)])),
        one_shots(about(lambda number: [shared(DOCUMENT), text(question(number))])),
    ),
    "a question before a document": (
        "CC120",
        "messages.0.content.0",
        one_shots(about(lambda number: [text(question(number)), document(EPHEMERAL)])),
        one_shots(about(lambda number: [document(EPHEMERAL), text(question(number))])),
    ),
    "a question before text and task": (
        "CC120",
        "messages.0.content.0",
        one_shots(about(lambda number: [text(question(number)), document(), shared("Answer now.")])),
        one_shots(about(lambda number: [document(), shared("Answer now."), text(question(number))])),
    ),
    "a question and a document in one text": (
        "CC120",
        "messages.0.content.0",
        one_shots(about(lambda number: [shared(f"{question(number)}\n\n{DOCUMENT}")])),
        one_shots(about(lambda number: [shared(f"Question q ?\n\n{DOCUMENT}"), text(question(number)[11:-1])])),
    ),
    "a profile and the rules in one text": (
        "CC110",
        "system.0",
        one_shots(asked(lambda number: [shared(words(f"{number} likes", 250) + RULES)])),
        one_shots(asked(lambda number: [shared(f"49{RULES}"), text(words(f"{number} likes", 250)[:-2])])),
    ),
}


@pytest.mark.parametrize("order", ORDERS)
def test_the_dollars_are_those_of_the_other_order(order: str) -> None:
    code, place, sendings, right = ORDERS[order]
    found = explained(sendings)
    saved = naive_cost(sendings) - naive_cost(right)
    assert found.cost == naive_cost(sendings)
    assert abs(found.avoidable - saved) <= Decimal("0.002") * saved
    ordered = [finding for finding in found.findings if finding.code == code]
    assert [(finding.call, finding.block) for finding in ordered] == [(call, place) for call in range(2, 6)]
    assert sum(finding.cost for finding in ordered) > Decimal("0.97") * saved
    assert all(finding.fix.startswith("send first what conversations share") for finding in ordered)
    assert found.lower_bound is not None and found.avoidable <= found.cost - found.lower_bound


def test_it_is_exact_where_the_blocks_are_only_moved() -> None:
    for order in (
        "a user's line before the rules",
        "for an hour",
        "a line and a clock between",
        "a question before a text",
    ):
        _, _, sendings, right = ORDERS[order]
        assert explained(sendings).avoidable == naive_cost(sendings) - naive_cost(right), order


def lint_codes(sendings: Sequence[Sending]) -> list[tuple[str, str, int | None, int]]:
    recorded = [Call(call.request, call.start, call.day) for call in calls_of(sendings)]
    linted = lint_log(recorded, "log", RequestLoader(RuleBook(), "anthropic", "bytes"))
    return [(one.code, one.path, one.call, one.calls) for one in linted.findings]


@pytest.mark.parametrize("order", [name for name in ORDERS if name != "without a breakpoint"])
def test_lint_of_the_log_sees_it(order: str) -> None:
    _, place, sendings, _ = ORDERS[order]
    assert any(row == (code, place, 2, 4) for row in lint_codes(sendings) for code in ("CC530", "CC533", "CC537"))


def test_users_who_come_again_read_what_they_wrote() -> None:
    """Every call is sent in the other order, also those that lost nothing: they would have nothing to read."""
    sendings = one_shots(asked(lambda number: [text(user(number % 3)), shared(RULES)]), calls=9)
    right = one_shots(asked(lambda number: [shared(RULES), shared(user(number % 3))]), calls=9)
    found = explained(sendings)
    assert [finding.call for finding in found.findings] == [2, 3]
    assert found.avoidable == naive_cost(sendings) - naive_cost(right)
    assert found.notes == []
    assert [row[2:] for row in lint_codes(sendings)] == [(2, 2)]


def test_two_kinds_of_conversations_are_ordered_each_by_itself() -> None:
    def both(first: bool) -> list[Sending]:
        def system(number: int) -> Blocks:
            of_kind = shared(RULES if number % 2 else words("other", 900))
            return [of_kind, text(user(number))] if first else [text(user(number)), of_kind]

        return one_shots(asked(system), calls=8)

    found = explained(both(first=False))
    assert found.avoidable == naive_cost(both(first=False)) - naive_cost(both(first=True))
    assert [finding.call for finding in found.findings] == list(range(3, 9))


HEALTHY = {
    "the other order": RIGHT,
    "pauses longer than the TTL": one_shots(asked(lambda number: [text(user(number)), shared(RULES)]), gap=400),
    "too short to be cached": one_shots(asked(lambda number: [text(user(number)), shared("Be kind.")])),
    "nothing shared": one_shots(asked(lambda number: [text(user(number)), shared(words(f"rule of {number}", 900))])),
    "other tools": one_shots(asked(lambda number: [text(user(number)), shared(RULES)])),
}
for _number, _sending in enumerate(HEALTHY["other tools"]):
    _sending.body["tools"].insert(0, {**TOOLS[0], "name": f"own_{_number}"})


@pytest.mark.parametrize("log", HEALTHY)
def test_no_order_is_advised_where_none_saves(log: str) -> None:
    found = explained(HEALTHY[log])
    assert {finding.cause for finding in (*found.findings, *found.notes)} <= {"written_never_read"}


def test_conversations_of_several_calls_keep_their_order() -> None:
    def talks(first: bool) -> list[Sending]:
        sendings = []
        for number in range(4):
            messages = [{"role": "user", "content": [text(question(number))]}]
            system = [shared(RULES), text(user(number))] if first else [text(user(number)), shared(RULES)]
            for turn in range(3):
                body = {
                    "model": "claude-opus-5",
                    "max_tokens": 100,
                    "tools": TOOLS,
                    "system": system,
                    "messages": messages,
                }
                made = deepcopy(body)
                made["messages"][-1]["content"][-1]["cache_control"] = EPHEMERAL
                sendings.append(Sending(made, 1000.0 + 100 * number + 20 * turn))
                messages += [
                    {"role": "assistant", "content": [text(words(f"answer {number} {turn}", 30))]},
                    {"role": "user", "content": [text(words(f"more {number} {turn}", 30))]},
                ]
        return sendings

    found = explained(talks(first=False))
    assert found.avoidable == naive_cost(talks(first=False)) - naive_cost(talks(first=True))
    assert [finding.call for finding in found.findings] == [4, 7, 10]
