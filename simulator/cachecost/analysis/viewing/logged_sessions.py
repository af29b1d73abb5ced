"""What logs know of their sessions. Calls without a bill get the usage of a replay, to be looked at like others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from cachecost.base.structs import replace
from cachecost.conversations.calls import RecordedCall
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import recorded_workload


def key_of_call(call: RecordedCall) -> str:
    """The key of a call's session, as in `session_key`."""
    return call.session or call.file


@dataclass(slots=True)
class LoggedSessions:
    """What the calls of logs say of their sessions: which have no bill, which have requests, and which have text.

    `unknown` counts calls without a bill that cannot be simulated, by why.
    """

    setup: ReplaySetup
    without_bill: set[str] = field(default_factory=set)
    with_requests: set[str] = field(default_factory=set)
    with_text: set[str] = field(default_factory=set)
    unknown: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def complete(self, calls: list[RecordedCall]) -> Sequence[RecordedCall]:
        """The calls, those of sessions without any bill with what a replay says of them."""
        keys = list(map(key_of_call, calls))
        billed = {key for key, call in zip(keys, calls, strict=True) if call.billed is not None}
        self.with_requests.update(key for key, call in zip(keys, calls, strict=True) if not call.is_bill_only)
        self.with_text.update(key for key, call in zip(keys, calls, strict=True) if _has_text(call))
        self.without_bill.update(key for key in keys if key not in billed)
        return self._simulated(calls, keys) if self.without_bill else calls

    def _simulated(self, calls: list[RecordedCall], keys: list[str]) -> list[RecordedCall]:
        simulation = recorded_workload("", calls, self.setup.with_recorded(calls, None)).simulation()
        made = []
        for key, call in zip(keys, calls, strict=True):
            row = simulation.row(call)
            if key not in self.without_bill or call.has_failed:
                made.append(call)
            elif row.error is not None:
                self.unknown[row.error] += 1
            else:
                made.append(replace(call, billed=row.usage))
        return made


def _has_text(call: RecordedCall) -> bool:
    """Whether any block of the call has its content."""
    request = call.request
    message = request.thread.message
    blocks = (*request.system.blocks[:1], *request.tools.blocks[:1], *(message.blocks if message else ()))
    return any(block.content is not None for block in blocks)
