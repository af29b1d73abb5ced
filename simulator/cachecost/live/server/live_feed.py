"""The calls on the bill for the page of a simulated API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from cachecost.conversations.calls import Call, RecordedCall
from cachecost.ledger.rows import REFUSED
from cachecost.live.server.meter import Meter, MeteredCall

REFUSED_STATUS, UNKNOWN_STATUS = 400, 404
NAME = "cachecost serve"
CALL_FIELDS = [field.name for field in fields(Call)]


@dataclass(frozen=True, slots=True)
class MeterFeed:
    """The calls of a meter, each with its simulated usage as its bill."""

    meter: Meter

    def since(self, count: int) -> Sequence[RecordedCall]:
        """The calls after the first `count`."""
        return [_recorded(one) for one in self.meter.taken[count:]]


def _recorded(one: MeteredCall) -> RecordedCall:
    row, told = one.row, {name: getattr(one.call, name) for name in CALL_FIELDS}
    if row.error is not None:
        return RecordedCall(**told, status=REFUSED_STATUS if row.error_type == REFUSED else UNKNOWN_STATUS)
    return RecordedCall(**told, billed=row.usage)
