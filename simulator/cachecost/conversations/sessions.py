"""From calls to conversations: which call continues which, which are side calls, where a thread was rewritten.

Only the requests are needed; sessions named in the log are respected. The rules:

- A call continues the latest call whose messages it all begins with; one with the same head comes before others.
- Of several calls that continue one call, the one with the most descendants is the main thread. Of the others, those
  without descendants are side calls, the rest are forks: conversations of their own. So is a last call with another
  head or schema.
- A call that shares only the first messages with an earlier one under the same head rewrote the thread (an edit); one
  that shares none, in a session of that name, compacted it. Without a name it begins a conversation: a compaction and
  a new session with the same head look alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import merge
from pathlib import Path
from typing import Any

from cachecost.base.formatting import count_text
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.model import Aside, Conversation, Event, Human, Reply, Results, Switch, ThreadRewrite
from cachecost.conversations.readers.detect import CALLS, CONVERSATIONS, detect, read_calls
from cachecost.prompts.blocks import Block, Message, Thread

SAME_HEAD = " with the tools and system prompt of an earlier one: new or compacted, taken as new"
SIDE_PARAMETERS = ("tool_choice", "output_config", "output_format", "compaction")
"""What side calls change besides the static prefix: they force a tool or ask for a schema."""
Place = tuple[str, str | None, str, bool, str]
"""Workspace, host, session, batch, agent: calls of different places never go on from each other."""


@dataclass(slots=True, eq=False)
class Turn:
    """A call in the tree of calls: `before` is the one it goes on from, `follows` counts itself and all after it."""

    call: Call
    number: int
    before: Turn | None = None
    after: list[Turn] = field(default_factory=list)
    follows: int = 1

    @property
    def thread(self) -> Thread:
        return self.call.request.thread

    @property
    def head(self) -> tuple[str, bytes, bytes]:
        request = self.call.request
        return request.model, request.tools.digest, request.system.digest

    @property
    def goes_on(self) -> bool:
        """Whether all messages of the call before stand at the beginning of this one."""
        return self.before is not None and self.before.thread.common(self.thread) is self.before.thread


def read_conversations(path: Path, format_: str = "auto", warn: Warn = quiet) -> tuple[list[Conversation], list[Call]]:
    """The conversations of a recording in any format, and the calls that they were found in, if it holds calls. Raises
    InputError with every fault."""
    name, _ = detect(path, format_)
    if name not in CALLS:
        return [CONVERSATIONS[name].read(path, warn)], []
    calls = list(read_calls(path, format_, warn))
    return conversations_of(calls, lambda words: warn(f"{path}: {words}")), calls


def conversations_of(calls: Iterable[Call], warn: Warn = quiet) -> list[Conversation]:
    """The conversations that `calls` (in time order) are, in the order they begin. What is left out goes to `warn`."""
    tree = CallTree()
    for call in calls:
        tree.add(call)
    for (noun, rest), times in sorted(tree.notes.items()):
        warn(f"{count_text(times, noun)}{rest}")
    return [_build_conversation(main, asides, number) for number, (main, asides) in enumerate(tree.mains(), 1)]


class CallTree:
    """A tree of calls: each is a child of the call that it continues."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.notes: Counter[tuple[str, str]] = Counter()
        """How many, of what (a noun), and what about them."""
        self._ends: dict[tuple[Place, Thread], list[Turn]] = {}
        self._through: dict[tuple[Place, Thread], Turn] = {}
        self._latest: dict[tuple[Place, tuple[str, bytes, bytes]], Turn] = {}

    def add(self, call: Call) -> None:
        if call.has_failed or call.request.fault:
            self.notes["failed or refused call", ": not part of a conversation"] += 1
            return
        if call.is_bill_only or call.why_unknown:
            is_bill = " with only its bill in the log: not part of a conversation"
            self.notes["call", is_bill if call.is_bill_only else f" skipped: {call.why_unknown}"] += 1
            return
        turn = Turn(call, len(self.turns))
        place = call.workspace, call.host, call.session, call.is_batch, call.agent
        turn.before = self._before(turn, place)
        if turn.before is not None:
            turn.before.after.append(turn)
        self.turns.append(turn)
        self._ends.setdefault((place, turn.thread), []).append(turn)
        self._latest[place, turn.head] = turn
        for node in turn.thread.back():
            if (place, node) in self._through:
                break
            self._through[place, node] = turn

    def add_all(self, calls: Iterable[Call]) -> Iterator[Call]:
        """Yield the calls unchanged, and add each to the tree."""
        for call in calls:
            self.add(call)
            yield call

    @property
    def conversations(self) -> int:
        """How many conversations the calls are, forks included."""
        return sum(1 for _ in self.mains())

    def _before(self, turn: Turn, place: Place) -> Turn | None:
        """The call that this one goes on from: by its messages, else by some of them, else by its session."""
        shared: Turn | None = None
        for node in turn.thread.back():
            if node is not turn.thread and (place, node) in self._ends:
                candidates = self._ends[place, node]
                same = [one for one in candidates if one.head == turn.head]
                return (same or list(candidates))[-1]
            shared = shared or self._through.get((place, node))
        tip = self._latest.get((place, turn.head))
        if tip is not None and not place[2] and shared is None:
            self.notes["conversation", SAME_HEAD] += 1
        if tip is not None and (place[2] or (shared is not None and _root(shared) is _root(tip))):
            return tip
        return None

    def mains(self) -> Iterator[tuple[list[Turn], list[Turn]]]:
        """Each main thread with its side calls, in the order they begin."""
        for turn in reversed(self.turns):
            turn.follows = 1 + sum(one.follows for one in turn.after)
        begins = [turn for turn in self.turns if turn.before is None]
        found = []
        while begins:
            main, asides = [begins.pop()], list[Turn]()
            while after := main[-1].after:
                following = max(after, key=lambda one: (not _stands_aside(one), one.follows, one.number))
                others = [one for one in after if one is not following or _stands_aside(one)]
                asides += [one for one in others if not one.after]
                begins += [one for one in others if one.after]
                if following in others:
                    break
                main.append(following)
            found.append((main, asides))
        yield from sorted(found, key=lambda one: one[0][0].number)


def _stands_aside(turn: Turn) -> bool:
    """Whether a call has no descendants and other settings than the call before it."""
    if turn.after or turn.before is None:
        return False
    mine, theirs = turn.call.request, turn.before.call.request
    heads = (mine.tools.digest, mine.system.digest) != (theirs.tools.digest, theirs.system.digest)
    return heads or any(mine.params.get(name) != theirs.params.get(name) for name in SIDE_PARAMETERS)


def _root(turn: Turn) -> Turn:
    while turn.before is not None:
        turn = turn.before
    return turn


def _build_conversation(main: list[Turn], asides: list[Turn], number: int) -> Conversation:
    """The conversation of a main thread and its side calls."""
    events, index, first = list[Event](), 0, main[0].call
    for turn in merge(main, sorted(asides, key=_order_key), key=_order_key):
        if index < len(main) and turn is main[index]:
            following = main[index + 1] if index + 1 < len(main) else None
            events += _turn_events(turn, main[index - 1] if index else None, following)
            index += 1
        else:
            events.append(Aside(turn.call.start, turn.call.request, _reply(turn.call, turn.call.response)))
    return Conversation(
        f"{first.session} {first.agent}".strip() or f"conversation {number}",
        tuple(events),
        first.request.model,
        first.request.tools,
        first.request.system,
        first.source,
        params=first.request.params,
        host=first.host,
        workspace=first.workspace,
        is_batch=first.is_batch,
        root=first.request.thread.up_to(0),
        session=first.session,
        project=first.project,
        agent=first.agent,
    )


def _turn_events(turn: Turn, earlier: Turn | None, following: Turn | None) -> Iterator[Event]:
    """The events of a call of the main thread, between those before and after it there."""
    call, at = turn.call, turn.call.start
    if earlier and _request_settings(call) != _request_settings(earlier.call):
        request = call.request
        yield Switch(at, request.model, request.tools, request.system, request.params)
    keep = earlier.thread.common(turn.thread).length if earlier else 0
    goes_on = earlier is not None and turn.goes_on
    new = _messages_after(turn.thread, keep)
    if goes_on and new and new[0].role == "assistant":
        keep, new = keep + 1, new[1:]
    last = new.pop() if new and new[-1].role == "user" else None
    if new or (earlier and not goes_on):
        why = "start" if turn.before is None else "fork"
        if earlier:
            is_cut = keep == 0 or turn.thread.length < earlier.thread.length
            why = "insertion" if goes_on else "compaction" if is_cut else "edit"
        yield ThreadRewrite(at, keep, tuple(new), why)
    if last is not None:
        has_results = any(block.kind == "tool_result" for block in last.blocks)
        yield (Results if has_results else Human)(at, last.blocks)
    answer = call.response
    if following is not None and following.goes_on:  # as it is sent: what the client made of it goes on
        sent = _messages_after(following.thread, turn.thread.length)
        answer = sent[0].blocks if sent and sent[0].role == "assistant" else ()
    yield _reply(call, answer)


def _order_key(turn: Turn) -> tuple[float, int]:
    return turn.call.start, turn.number


def _reply(call: Call, blocks: tuple[Block, ...]) -> Reply:
    return Reply(call.start, blocks, call.ready_s or None, call.output_tokens)


def _request_settings(call: Call) -> tuple[str, bytes, bytes, Mapping[str, Any]]:
    request = call.request
    return request.model, request.tools.digest, request.system.digest, request.params


def _messages_after(thread: Thread, length: int) -> list[Message]:
    found = []
    for node in thread.back():
        if node.length <= length:
            break
        assert node.message is not None
        found.append(node.message)
    return found[::-1]
