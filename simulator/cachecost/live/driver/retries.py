"""When to retry a failed attempt, and after how many seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import blake2b

from cachecost.live.driver.wire import AttemptFailed

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 60.0
"""Without a `retry-after`: 0.5 s, doubled each time, at most a minute."""
LONGEST_ASKED_S = 900.0
"""A call is not retried if the server asks for a longer wait."""
JITTER = 0.25
"""The random share of a wait, so that parallel calls do not retry together."""
AGAIN = frozenset({408, 409, 429})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `most` retries of a call; waits are drawn from `seed`, so the same run waits the same."""

    most: int = 4
    seed: str = ""

    def wait(self, fault: AttemptFailed, retry: int, label: str, now: float) -> float | None:
        """Seconds to wait before the `retry`-th retry (from 1) of a call; None: do not retry."""
        if retry > self.most or not _is_worth_it(fault):
            return None
        asked = asked_for(fault.headers, now)
        if asked is not None:
            return asked if asked <= LONGEST_ASKED_S else None
        wait = min(FIRST_WAIT_S * 2.0 ** (retry - 1), LONGEST_WAIT_S)
        return wait * (1 - JITTER * _draw_fraction(f"{self.seed}/{label}/{retry}"))


def asked_for(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that `retry-after-ms` or `retry-after` (seconds, or a date) ask for; None where they do not."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        return max(0.0, seconds) if seconds == seconds else None
    try:
        date = parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    zoned = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (zoned - datetime.fromtimestamp(now, UTC)).total_seconds())


def _is_worth_it(fault: AttemptFailed) -> bool:
    header = fault.headers.get("x-should-retry")
    if fault.status is not None and header in ("true", "false"):
        return header == "true"
    return fault.status is None or fault.status in AGAIN or fault.status >= 500


def _draw_fraction(text: str) -> float:
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest()) / 2**32
