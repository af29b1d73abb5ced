"""Cutting a thread to a window: what goes, and that the cut stays while the conversation grows."""

from __future__ import annotations

import pytest

from cachecost.prompts.blocks import Message, Part, Thread, given_block
from cachecost.strategies.agent import Window


def human(number: int, tokens: int) -> Message:
    return Message.of("user", (given_block("text", "user", f"human {number}", tokens),))


def reply(number: int, tokens: int) -> Message:
    return Message.of("assistant", (given_block("text", "assistant", f"reply {number}", tokens),))


def grown(*messages: Message) -> Thread:
    thread = Thread()
    for message in messages:
        thread = thread.then(message)
    return thread


def digests(thread: Thread) -> list[bytes]:
    return [message.digest for message in thread.messages()]


def turns(number: int, tokens: int = 50) -> list[Message]:
    """Messages of 4 bytes a token, so of 200 bytes."""
    return [make(turn, tokens) for turn in range(number) for make in (human, reply)]


def test_budget_and_target_are_shares_of_the_window_less_the_head() -> None:
    window = Window(1_000, (Part((given_block("tool", "", "t", 25),)), Part((given_block("text", "system", "s", 50),))))
    assert (window.budget, window.target) == (2_700 - 300, 2_400 - 300)


@pytest.mark.parametrize(
    ("number", "left"),
    [
        (6, 12),  # 2,400 bytes fit
        (7, 10),  # 2,800: 400 over the target of 2,400, so two tenths go, 480: three messages and one to the next human
        (8, 10),  # 3,200: 800 over, four tenths, 960: five messages and one
        (9, 12),  # 3,600: 1,200 over, exactly five tenths: six messages, and the next is human
    ],
)
def test_the_oldest_go_until_a_human_message_starts(number: int, left: int) -> None:
    messages = turns(number)
    assert digests(Window(1_000).fit(grown(*messages))) == digests(grown(*messages[2 * number - left :]))


@pytest.mark.parametrize(("tokens", "kept"), [(675, 1), (676, 0)])
def test_the_budget_is_filled_to_the_byte(tokens: int, kept: int) -> None:
    """2,700 bytes fit a window of 1,000 tokens; one token more and the only message is dropped."""
    assert len(Window(1_000).fit(grown(human(0, tokens))).messages()) == kept


def test_a_thread_that_fits_is_sent_as_it_is() -> None:
    thread = grown(*turns(3))
    assert Window(1_000).fit(thread) is thread


def test_the_cut_stays_while_the_thread_grows() -> None:
    """400 bytes over the target and 20 more each time: the cut moves where 720 are passed, not before."""
    window, thread = Window(1_000), grown(*turns(7))
    cuts = []
    for number in range(30):
        cuts.append(thread.length - window.fit(thread).length)
        thread = thread.then(reply(100 + number, 5))
    assert cuts == [4] * 17 + [6] * 13


def test_a_longer_cut_thread_shares_the_nodes_of_the_shorter() -> None:
    window, thread = Window(1_000), grown(*turns(7))
    before = window.fit(thread)
    after = window.fit(thread.then(reply(99, 1)))
    assert after.parent is before


def test_a_cut_thread_that_is_asked_for_again_is_the_same() -> None:
    window, thread = Window(1_000), grown(*turns(7))
    assert window.fit(thread) is window.fit(thread)


def test_nothing_is_left_where_no_human_message_can_start() -> None:
    """One long turn: what follows the cut are results without their calls."""
    messages = [human(0, 500), reply(0, 500), reply(1, 500)]
    assert Window(1_000).fit(grown(*messages)).messages() == []


def test_a_head_that_fills_the_window_leaves_nothing() -> None:
    window = Window(1_000, (Part((given_block("tool", "", "t", 900),)),))
    assert (window.budget, window.target) == (0, 0)
    assert window.fit(grown(*turns(2))).messages() == []
    assert window.fit(Thread()).messages() == []


def test_work_is_for_new_messages_only(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    original = Thread.then

    def counted(self: Thread, message: Message) -> Thread:
        made.append(message)
        return original(self, message)

    window, thread = Window(100_000), grown(*turns(700))
    window.fit(thread)
    monkeypatch.setattr(Thread, "then", counted)
    window.fit(original(thread, reply(0, 1)))
    assert len(made) == 1
