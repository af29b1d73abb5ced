"""The recording of a run: written as calls are answered, and put in order by time when it ends or goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from cachecost.live.driver.journal import Journal, Story
from cachecost.live.driver.model import Sent
from cachecost.live.driver.planning import Plan
from cachecost.live.driver.wire import Begun, NotAnswered
from cachecost.live.log import CallLog, moment


class Recorded:
    """A Watcher: the journal first, then the recording. Each strategy is a workspace, and a session, of its own."""

    def __init__(self, journal: Journal, log: CallLog) -> None:
        self._journal = journal
        self._log = log

    def reserved(self, label: str, retry: int, dollars: Decimal) -> None:
        self._journal.reserved(label, retry, dollars)

    def done(self, label: str, retry: int, sent: Sent, dollars: Decimal, body: Mapping[str, Any]) -> None:
        self._journal.done(label, retry, sent, dollars, body)
        self._log.append(_fields(label, sent), _bytes(body))

    def released(self, label: str, retry: int, fault: NotAnswered) -> None:
        self._journal.released(label, retry, fault)

    def lost(self, label: str, retry: int, fault: NotAnswered, dollars: Decimal, body: Mapping[str, Any]) -> None:
        self._journal.lost(label, retry, fault, dollars, body)
        if fault.begun:
            self._log.append(_fields(label, fault.begun), _bytes(body))


def rewrite(path: Path, plan: Plan, story: Story) -> None:
    """The whole recording that the journal tells, by time; whoever kills this leaves the old one."""
    steps = {step.label: step for step in plan.steps}
    told: list[tuple[float, str, Sent | Begun]] = [
        *((sent.start, label, sent) for label, sent in story.done.items() if label in steps),
        *((part.start, label, part) for label, part in story.begun if label in steps),
    ]
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    with CallLog(fresh) as log:
        for _, label, sent in sorted(told, key=lambda row: row[:2]):
            log.append(_fields(label, sent), _bytes(steps[label].body))
    fresh.replace(path)


def _fields(label: str, sent: Sent | Begun) -> dict[str, Any]:
    """A call's fields. An answer that was cut off has no usage: it takes part in the cache and is not judged."""
    name = label.rpartition("/")[0]
    told = {
        "call": label,
        "timestamp": moment(sent.start),
        "first_token_s": round(sent.first_token_s, 6),
        "workspace": name,
        "session": name,
    }
    if isinstance(sent, Begun):
        return told
    return {**told, "usage": sent.usage.wire(), "response": {**sent.response, "usage": sent.usage.wire()}}


def _bytes(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
