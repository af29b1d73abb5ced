"""What agents do to a context that grows: cleared, cut, deduplicated, attached again; compaction has its own file."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from itertools import pairwise
from typing import Literal

import pytest
from small_talks import MODEL, conversation, fingerprint, question, result, said, thought, used, user

from cachecost.conversations.calls import Call
from cachecost.conversations.model import Conversation, Event, Human, Reply, Results, Switch, ThreadRewrite
from cachecost.prompts.blocks import Block, Message, Part, given_block
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.strategy_ledger import replay_strategy
from cachecost.strategies.agent import Agent, Window
from cachecost.strategies.changes.base import AgentChange, ThreadRewriter
from cachecost.strategies.changes.context import Compaction, Deduplicate, OutputCap, Prune, Truncate
from cachecost.strategies.changes.messages import Attachments
from cachecost.strategies.spec import StrategySpec

OTHER = "claude-haiku-4-5"


class Facts:
    context_window = 1_000


def sized(kind: str, role: str, name: str, tokens: int) -> Block:
    return given_block(kind, role, name, tokens)


def turn(number: int, results: int = 1, tokens: int = 100) -> list[Event]:
    """A question, a call of tools, their results and an answer, a minute apart from the next."""
    at, n = 60.0 * number, range(results)
    return [
        Human(at, (sized("text", "user", f"q{number}", 20),)),
        Reply(at + 1, tuple(sized("tool_use", "assistant", f"u{number}.{k}", 30) for k in n)),
        Results(at + 2, tuple(sized("tool_result", "user", f"r{number}.{k}", tokens) for k in n)),
        Reply(at + 3, (sized("text", "assistant", f"a{number}", 40),)),
    ]


def turns(number: int, results: int = 1, tokens: int = 100) -> list[Event]:
    return [event for n in range(number) for event in turn(n, results, tokens)]


def planned(change: AgentChange, events: Iterable[Event], head: tuple[Part, Part] | None = None) -> list[Call]:
    session = conversation(*events)
    if head:
        session = Conversation("small", session.events, MODEL, *head)
    return list(Agent(name="a", changes=(change,), facts=lambda _: Facts()).plan(session))


def sizes(call: Call) -> list[list[int | None]]:
    return [[block.tokens for block in message.blocks] for message in call.request.thread.messages()]


def digests(call: Call) -> list[bytes]:
    return [message.digest for message in call.request.thread.messages()]


def cleared(calls: list[Call], kind: str = "tool_result") -> list[int]:
    """How many blocks of each call are placeholders."""
    blocks = [[block for message in call.request.thread.messages() for block in message.blocks] for call in calls]
    return [sum(block.kind == kind and block.tokens == 12 for block in each) for each in blocks]


def as_sent(events: Iterable[Event], change: AgentChange) -> list[Message]:
    return planned(change, events)[-1].request.thread.messages()


# --- an rewriter that changes nothing


class Doubled(ThreadRewriter):
    """Says every user message twice as long."""

    def rewrite_message(self, message: Message) -> Message:
        return Message.of(message.role, message.blocks * 2) if message.role == "user" else message


MESSY: tuple[Event, ...] = (
    ThreadRewrite(0, 0, (Message.of("user", (user("before"),)), Message.of("assistant", (said("yes"),))), "start"),
    Human(1, (user("one"),)),
    Reply(2, (thought("hm"), used("a"))),
    question(1, 3, tool_use="a"),
    Results(4, (result("a"),)),
    Reply(5, ()),
    Switch(6, OTHER, Part(), Part(), {}),
    ThreadRewrite(7, 3, (Message.of("user", (user("other"),)),), "fork"),
    Reply(8, (said("done"),)),
    ThreadRewrite(9, 99, (), "edit"),
    Human(10, (user("two"),)),
    Reply(11, (said("bye"),)),
)


@pytest.mark.parametrize(
    "change",
    [
        Prune(keep_results=9),
        Prune(every_turns=0, keep_results=0, above_tokens=10**6),
        Truncate(window_tokens=10**6),
        Truncate(),
        Deduplicate(),
        OutputCap(),
        Attachments(count=0),
        Compaction(),
        Compaction(min_turns=0, window_tokens=10**6),
    ],
)
def test_what_is_not_due_changes_nothing(change: AgentChange) -> None:
    session = conversation(*MESSY)
    plain, changed = (list(Agent(name="a", changes=each).plan(session)) for each in ((), (change,)))
    assert [fingerprint(call) for call in changed] == [fingerprint(call) for call in plain]


def test_a_rewrite_means_the_messages_it_meant_also_where_they_are_sent_otherwise() -> None:
    session = Doubled().rewrite(conversation(*MESSY))
    last = list(Agent(name="a").plan(session))[-1].request.thread.messages()
    plain = list(Agent(name="a").plan(conversation(*MESSY)))[-1].request.thread.messages()
    assert [message.role for message in last] == [message.role for message in plain]
    twice = [2 if message.role == "user" else 1 for message in plain]
    assert [len(message.blocks) for message in last] == twice


def texts(rewriter: ThreadRewriter) -> list[str]:
    return [str((message.blocks[0].content or {})["text"]) for message in rewriter.sent_messages]


def told(number: int) -> ThreadRewriter:
    rewriter = ThreadRewriter()
    for n in range(number):
        rewriter.send(Human(n, (user(f"m{n}"),)))
    return rewriter


SHORT = (Message.of("user", (user("short"),)),)


@pytest.mark.parametrize(
    ("keep", "left"),
    [
        (0, "new"),
        (2, "m0 m1 new"),
        (3, "m0 m1 m2 new"),
        (4, "m0 m1 m2 m3 new"),
        (5, "m0 m1 short new"),
        (6, "m0 m1 short m5 new"),
        (9, "m0 m1 short m5 new"),
    ],
)
def test_going_back_into_what_one_message_stands_for_makes_it_whole_again(keep: int, left: str) -> None:
    rewriter = told(6)
    made = rewriter.replace_range(9, 2, 5, SHORT)
    assert (made.keep, len(made.messages)) == (2, 2)
    rewriter.send(ThreadRewrite(10, keep, (Message.of("user", (user("new"),)),), "fork"))
    assert texts(rewriter) == left.split()
    assert rewriter.tokens == sum(-(-block.size // 4) for message in rewriter.sent_messages for block in message.blocks)
    assert rewriter.turns == list(range(len(rewriter.sent_messages)))


@pytest.mark.parametrize(("keep", "left"), [(1, "m0 new"), (2, "m0 m1 new"), (3, "new"), (4, "m3 new")])
def test_going_back_into_what_was_left_out_brings_it_back(keep: int, left: str) -> None:
    rewriter = told(5)
    rewriter.replace_range(9, 0, 3, ())
    assert texts(rewriter) == ["m3", "m4"]
    rewriter.send(ThreadRewrite(10, keep, (Message.of("user", (user("new"),)),), "fork"))
    assert texts(rewriter) == left.split()


# --- prune


def test_all_results_but_the_last_are_placeholders_and_what_is_cleared_stays_cleared() -> None:
    calls = planned(Prune(keep_results=2), turns(5))
    assert cleared(calls) == [0, 0, 0, 0, 0, 0, 1, 1, 2, 2]
    assert sizes(calls[-1])[2::4] == [[12], [12], [100], [100], [100]]
    assert digests(calls[7])[:13] == digests(calls[6])


def test_in_steps_the_cut_moves_rarely() -> None:
    assert cleared(planned(Prune(keep_results=1, every_turns=3), turns(7))) == [0] * 6 + [2] * 6 + [5] * 2


def test_before_every_call_within_a_turn_but_never_what_no_call_has_sent() -> None:
    loop = turn(0, 3)[:3] + turn(1, 2)[1:]
    assert cleared(planned(Prune(keep_results=0, every_turns=0), loop)) == [0, 0, 3]
    assert cleared(planned(Prune(keep_results=1, every_turns=0), loop)) == [0, 0, 3]
    assert cleared(planned(Prune(keep_results=3, every_turns=0), loop)) == [0, 0, 2]


@pytest.mark.parametrize(("turns_kept", "expected"), [(1, [0, 0, 1, 1, 2, 2, 3, 3]), (3, [0] * 6 + [1, 1])])
def test_results_of_the_last_turns_stay(turns_kept: int, expected: list[int]) -> None:
    assert cleared(planned(Prune(keep_results=0, keep_turns=turns_kept), turns(4))) == expected


HEAD_TOKENS = 2 * 100 + 2 * 200


@pytest.mark.parametrize(("above", "expected"), [(399, [0, 0, 1, 1]), (400 + 209, [0, 0, 1, 1]), (610 + 200, [0] * 4)])
def test_only_a_context_that_passes_the_threshold(above: int, expected: list[int]) -> None:
    """Before the second turn's first call: head 600, a turn of 190, a question of 20."""
    assert HEAD_TOKENS + 190 + 20 == 810
    assert cleared(planned(Prune(keep_results=0, above_tokens=above), turns(2))) == expected


@pytest.mark.parametrize(("least", "expected"), [(88, [0, 0, 1, 1]), (89, [0, 0, 0, 0])])
def test_only_if_it_saves_enough(least: int, expected: list[int]) -> None:
    assert cleared(planned(Prune(keep_results=0, at_least_tokens=least), turns(2))) == expected


@pytest.mark.parametrize(("clears", "expected"), [("responses", (1, 0)), ("requests", (0, 1)), ("both", (1, 1))])
def test_arguments_results_or_both(clears: str, expected: tuple[int, int]) -> None:
    calls = planned(Prune(keep_results=1, clears=clears), turns(3))  # type: ignore[arg-type]
    assert (cleared(calls)[-1], cleared(calls, "tool_use")[-1]) == expected


def test_what_is_no_longer_than_its_placeholder_stays() -> None:
    events = turns(2, tokens=12)
    assert digests(planned(Prune(keep_results=0), events)[-1]) == digests(planned(Prune(keep_results=9), events)[-1])


def test_after_a_fork_back_cleared_results_stay_cleared_and_gone_ones_are_forgotten() -> None:
    events = [*turns(4), ThreadRewrite(250, 8, (), "fork"), *turn(5), *turn(6), *turn(7)]
    calls = planned(Prune(keep_results=1), events)
    assert sizes(calls[-3])[2::4] == [[12], [12], [100], [100]]
    assert sizes(calls[-1])[2::4] == [[12], [12], [12], [100], [100]]


def cost(change: AgentChange, events: list[Event]) -> float:
    spec = StrategySpec.model_validate({"name": "x", "preset": "progressive", "changes": [change]})
    terms = ReplaySetup(
        RuleBook(as_of=date(2026, 6, 1)), PriceBook.load(None, date(2026, 6, 1)), tokens="bytes", model=MODEL
    )
    return float(sum(row.cost.total for row in replay_strategy(spec, conversation(*events), terms).rows))


def test_clearing_every_turn_costs_more_than_in_steps() -> None:
    """gajae#2334, magic-context#386: a small context that is rewritten each turn."""
    events = turns(24, results=4, tokens=500)
    every_turn, in_steps = (cost(Prune(keep_results=12, every_turns=n), events) for n in (1, 8))
    assert every_turn > 1.2 * in_steps


# --- deduplicate


def read(number: int, text: str, tokens_of_text: int = 400) -> list[Event]:
    at = 60.0 * number
    found = result(f"c{number}", (text * tokens_of_text)[:tokens_of_text])
    return [Human(at, (user(f"q{number}"),)), Reply(at + 1, (used(f"c{number}"),)), Results(at + 2, (found,))]


def references(events: list[Event], change: AgentChange) -> list[bool]:
    end = Reply(10**6, (said("so"),))
    blocks = [block for message in as_sent([*events, end], change) for block in message.blocks]
    return [block.tokens == 45 for block in blocks if block.kind == "tool_result"]


def test_what_was_sent_whole_before_is_a_reference() -> None:
    events = [*read(0, "x"), *read(1, "y"), *read(2, "x"), *read(3, "x")]
    assert references(events, Deduplicate()) == [False, False, True, True]


def test_short_results_are_sent_again() -> None:
    events = [*read(0, "x"), *read(1, "x")]
    size = next(event.blocks[0].size for event in events if isinstance(event, Results))
    assert references(events, Deduplicate(least_bytes=size)) == [False, True]
    assert references(events, Deduplicate(least_bytes=size + 1)) == [False, False]


def test_after_so_many_turns_a_result_is_sent_whole_again() -> None:
    events = [event for n in range(6) for event in read(n, "x")]
    assert references(events, Deduplicate(turns=2)) == [False, True, True, False, True, True]


def test_a_result_that_the_thread_lost_is_sent_whole_again() -> None:
    events = [*read(0, "y"), *read(1, "x"), ThreadRewrite(90, 3, (), "fork"), *read(2, "x"), *read(3, "y")]
    assert references(events, Deduplicate()) == [False, False, True]


def test_without_content_only_the_same_block_is_the_same() -> None:
    assert references(turns(2, tokens=400), Deduplicate()) == [False, False]
    assert references([*turn(0, tokens=400), *turn(0, tokens=400)], Deduplicate()) == [False, True]


# --- tool_output_cap


@pytest.mark.parametrize(
    ("tokens", "tool", "batch", "left"),
    [
        ((100, 50), 400, 10**6, (100, 50)),
        ((101, 50), 400, 10**6, (100, 50)),
        ((100, 50), 400, 600, (100, 50)),
        ((100, 50), 400, 599, (99, 50)),
        ((900, 100, 800), 2_800, 4_400, (500, 100, 500)),
        ((900, 800, 700), 10**6, 1_200, (100, 100, 100)),
    ],
)
def test_each_result_and_then_the_longest_are_cut(
    tokens: tuple[int, ...], tool: int, batch: int, left: tuple[int, ...]
) -> None:
    results = tuple(sized("tool_result", "user", f"r{n}", each) for n, each in enumerate(tokens))
    note = sized("text", "user", "note", 5_000)
    events = [Human(0, (user("go"),)), Reply(1, (used("a"),)), Results(2, (*results, note)), Reply(3, ())]
    assert as_sent(events, OutputCap(tool, batch))[-1].blocks[-1] is note
    assert tuple(block.tokens for block in as_sent(events, OutputCap(tool, batch))[-1].blocks[:-1]) == left


def test_the_caps_are_those_of_jp() -> None:
    assert (OutputCap().tool_bytes, OutputCap().batch_bytes) == (262_144, 2_097_152)


def test_a_cap_of_nothing_is_no_cap() -> None:
    with pytest.raises(ValueError, match="tool_bytes=0: expected at least 1"):
        OutputCap(0)


# --- truncate


NO_HEAD = (Part(), Part())


def small_turns(number: int, tokens: int = 10) -> list[Event]:
    """Two messages of 4 bytes a token each."""
    kinds = (("text", "user", "q"), ("text", "assistant", "a"))
    blocks = [[sized(kind, role, f"{name}{n}", tokens) for kind, role, name in kinds] for n in range(number)]
    pairs = [(Human(60.0 * n, (q,)), Reply(60.0 * n + 1, (a,))) for n, (q, a) in enumerate(blocks)]
    return [event for pair in pairs for event in pair]


@pytest.mark.parametrize("head", [NO_HEAD, (Part((given_block("tool", "", "t", 100),)), Part())])
@pytest.mark.parametrize("tokens", [3, 10, 50])
def test_in_steps_it_is_cut_as_jp_does(head: tuple[Part, Part], tokens: int) -> None:
    """The model's window is 1,000 tokens; jp's own rule is the one questions are cut by."""
    events, jp = small_turns(140, tokens), Window(1_000, head)
    whole = planned(Truncate(window_tokens=10**9), events, head)
    cut = planned(Truncate(), events, head)
    assert digests(cut[-1]) != digests(whole[-1])
    for sent, full in zip(cut, whole, strict=True):
        assert digests(sent) == [message.digest for message in jp.fit(full.request.thread).messages()]


def test_a_cut_in_steps_moves_more_rarely_than_an_exact_one() -> None:
    events = small_turns(80)
    firsts = [
        [digests(call)[0] for call in planned(Truncate(in_steps=each), events, NO_HEAD)] for each in (True, False)
    ]
    steps, exactly = (sum(a != b for a, b in pairwise(each)) for each in firsts)
    assert exactly == 80 - 34  # 2,700 bytes hold 33 turns of 80 bytes and a question of 40
    assert 0 < steps <= exactly / 2.5


@pytest.mark.parametrize(("tokens", "left"), [(674, 3), (675, 1), (900, 1)])
def test_the_last_turn_stays_even_if_it_is_too_long(tokens: int, left: int) -> None:
    last = Human(9, (sized("text", "user", "long", tokens),))
    events = [Human(0, (sized("text", "user", "q", 1),)), Reply(1, (sized("text", "assistant", "a", 0),))]
    assert len(planned(Truncate(), [*events, last, Reply(10, ())], NO_HEAD)[-1].request.thread.messages()) == left


def test_another_model_has_another_window() -> None:
    events = small_turns(30, 50)
    small = Switch(60.0 * 15 - 1, OTHER, *NO_HEAD, {})
    windows = {MODEL: 100_000, OTHER: 1_000}

    class Of:
        def __init__(self, model: str) -> None:
            self.context_window = windows[model]

    session = Conversation("small", (*events[:30], small, *events[30:]), MODEL)
    sent = [call.request for call in Agent(name="a", changes=(Truncate(),), facts=Of).plan(session)]
    assert [len(request.thread.messages()) for request in sent[:15]] == list(range(1, 31, 2))
    assert max(len(request.thread.messages()) for request in sent[15:]) <= 13


# --- attachments


def test_files_stand_before_the_first_message_and_a_change_makes_all_new() -> None:
    calls = planned(Attachments(count=2, tokens=700, change_rate=0.25), turns(5))
    assert [sizes(call)[0] for call in calls] == [[700, 700, 20]] * 10
    firsts = [digests(call)[0] for call in calls[::2]]
    assert [a != b for a, b in pairwise(firsts)] == [True, False, True, False]
    assert [digests(call)[1:] for call in calls] == [
        digests(call)[1:] for call in planned(Prune(keep_results=99), turns(5))
    ]


def test_files_attached_later_still_stand_before_the_first_message() -> None:
    calls = planned(Attachments(turn=3, tokens=700, change_rate=0), turns(4))
    assert [sizes(call)[0] for call in calls] == [[20]] * 4 + [[700, 20]] * 4


@pytest.mark.parametrize(("again", "expected"), [(False, [700, 700, 0, 0]), (True, [700, 700, 700, 700])])
def test_snapshots_stay_where_they_were_attached(again: bool, expected: list[int]) -> None:
    """Two files, of which one changes in each turn after."""
    change = Attachments("insertion", 2, 2, 700, 0.5, again)
    calls = planned(change, turns(4))
    questions = sizes(calls[-1])[0::4]
    assert questions[:2] == [[20], [700, 700, 20]]
    assert [sum(tokens or 0 for tokens in each) - 20 for each in questions[2:]] == expected[2:]
    for before, after in pairwise(calls):
        assert digests(after)[: len(digests(before))] == digests(before)


@pytest.mark.parametrize("where", ["first_message", "insertion"])
def test_where_the_message_with_the_files_goes_they_come_with_the_next(where: str) -> None:
    new = Message.of("user", (user("summary"),))
    events = [
        *turns(2),
        ThreadRewrite(100, 0, (new,), "compaction"),
        *turn(3),
        ThreadRewrite(300, 1, (), "fork"),
        *turn(6),
    ]
    calls = planned(Attachments(where, tokens=700, change_rate=0), events)  # type: ignore[arg-type]
    assert [sizes(call)[0][0] for call in calls] == [700] * len(calls)
    files = [
        block for message in calls[-1].request.thread.messages() for block in message.blocks if block.tokens == 700
    ]
    assert len(files) == 1


def test_a_file_that_changes_costs_more_at_the_front() -> None:
    front, snapshot = (cost(Attachments(where, change_rate=0.5), turns(12, tokens=900)) for where in WHERE)
    assert front > 1.5 * snapshot


WHERE: tuple[Literal["first_message"], Literal["insertion"]] = ("first_message", "insertion")
