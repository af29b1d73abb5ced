"""Which earlier call a call continues: `caches/lineage.py`, in the terms of a replay that looks at calls by itself."""

from __future__ import annotations

from cachecost.base.structs import identity_struct
from cachecost.caches.lineage import Lineage as CallLineage
from cachecost.caches.lineage import Relatives
from cachecost.prompts.blocks import Prefix, Thread
from cachecost.prompts.render import BreakpointPrefix, Prompt
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules


@identity_struct
class EarlierCall:
    """A call to remember. `entry` is the deepest prefix that it had in the cache."""

    number: int
    passed: int
    start: float
    request: Request
    prompt: Prompt
    rules: ModelRules
    entry: Prefix | None


class Lineage:
    """All calls so far."""

    def __init__(self) -> None:
        self._calls = CallLineage()

    def find_shared(self, prompt: Prompt) -> Prefix:
        return self._calls.find_shared(prompt)

    def forerunner(self, request: Request, model: str, pool: str, file: str) -> Relatives:
        return self._calls.forerunner(request, model, pool, file)

    def is_followed(self, thread: Thread, pool: str) -> bool:
        return self._calls.is_followed(thread)

    def remember(self, call: EarlierCall, pool: str, file: str) -> None:
        relatives = self._calls.forerunner(call.request, call.rules.model, pool, file)
        deepest = BreakpointPrefix(call.entry, "5m") if call.entry else None
        self._calls.remember(
            call.number, call.passed, call.start, call.request, call.prompt, call.rules, deepest, relatives
        )
