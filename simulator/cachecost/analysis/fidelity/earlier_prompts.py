"""What earlier calls of a recording sent, cached or not: the most that a later call can have read."""

from __future__ import annotations

from cachecost.caches.prompt_history import PromptHistory
from cachecost.prompts.blocks import Prefix

GONE_S = 7 * 86_400.0
"""No host says that it keeps an entry for longer than a few days after its last use, in seconds."""


class EarlierPrompts:
    """Prompts of a recording, with the answers that came back in later ones."""

    def __init__(self) -> None:
        self._answers = PromptHistory()
        self._sent: dict[Prefix, float] = {}

    def reach(self, end: Prefix, start: float) -> Prefix | None:
        """The longest beginning of the prompt that ends at `end` that an earlier call sent or got, not too long ago.

        Records the prompt, too. `start` is in seconds.
        """
        shared, answer, *_ = self._answers.add_call(end)
        found = self._recent(shared, start)
        self._take(end, start)
        return answer if answer is not None and found is shared else found

    def _recent(self, node: Prefix | None, start: float) -> Prefix | None:
        while node is not None and start - self._sent[node] > GONE_S:
            node = node.parent
        return node

    def _take(self, end: Prefix, start: float) -> None:
        node: Prefix | None = end
        while node is not None:
            self._sent[node] = start
            node = node.parent
