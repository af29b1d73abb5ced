"""Which earlier call a call continues, and how much of it was sent before."""

from __future__ import annotations

from dataclasses import dataclass

from cachecost.prompts.blocks import Prefix, Thread
from cachecost.prompts.render import Prompt
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules


@dataclass(frozen=True, slots=True, eq=False)
class EarlierCall:
    """An earlier call to compare with. `entry` is the deepest prefix that it had in the cache.

    `number` is that of the call, `passed` that of its first pass in the replay.
    """

    number: int
    passed: int
    start: float
    request: Request
    prompt: Prompt
    rules: ModelRules
    entry: Prefix | None


class Lineage:
    """All calls so far. A lookup takes time for what is new in a call, or since it diverged from its forerunner."""

    def __init__(self) -> None:
        self._sent: set[Prefix] = set()
        self._at_thread: dict[tuple[str, Thread, str], EarlierCall] = {}
        self._of_conversation: dict[tuple[str, Thread], EarlierCall] = {}
        self._of_model: dict[tuple[str, Thread, str], EarlierCall] = {}
        self._last: dict[tuple[str, str, str], EarlierCall] = {}

    def find_shared(self, prompt: Prompt) -> Prefix:
        """The longest prefix of the prompt that was sent before, whether or not it was cached."""
        node = prompt.end
        while node not in self._sent and node.parent is not None:
            node = node.parent
        return node

    def forerunner(self, request: Request, model: str, pool: str, file: str) -> EarlierCall | None:
        """The call that this one continues or should have continued: of its conversation on its model, else on another
        model, else the latest of its pool, model and file. Different files need not have to do with each other.
        """
        conversation = (pool, request.thread.up_to(1))
        own = self._of_model.get((*conversation, model))
        if own is None and request.thread.length > 1:
            own = self._of_conversation.get(conversation)
        return self._nearer(own, request, pool) or self._last.get((pool, model, file))

    def _nearer(self, latest: EarlierCall | None, request: Request, pool: str) -> EarlierCall | None:
        """An older call of the conversation, if it shares more with this one than the latest does."""
        if latest is None:
            return None
        model, common = latest.rules.model, request.thread.common(latest.request.thread).length
        grown = (self._at_thread.get((pool, node, model)) for node in request.thread.back())
        found = next((seen for seen in grown if seen), None)
        return found if found and found.request.thread.length > common else latest

    def is_followed(self, thread: Thread, pool: str) -> bool:
        """Whether the conversation had a call before."""
        return (pool, thread.up_to(1)) in self._of_conversation

    def remember(self, call: EarlierCall, pool: str, file: str) -> None:
        """Keep a call for those that come after it."""
        node: Prefix | None = call.prompt.end
        while node is not None and node not in self._sent:
            self._sent.add(node)
            node = node.parent
        thread, model = call.request.thread, call.rules.model
        first = thread.up_to(1)
        self._at_thread[pool, thread, model] = self._of_model[pool, first, model] = call
        self._of_conversation[pool, first] = self._last[pool, model, file] = call
