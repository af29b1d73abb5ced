"""How to repeat a what-if: as a command line that gives the same figures, and as a scenario."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from json import dumps
from typing import Any

from cachecost.analysis.viewing.replay import SessionReplay
from cachecost.analysis.viewing.what_if import AS_SENT, KINDS

CUT_FILE = "session.jsonl"
HOUR_LAYERS = {"1h:tools": ("last_tool",), "1h:tools+system": ("last_tool", "last_system")}
OWN_BREAKPOINTS: Mapping[str, Sequence[str]] = {
    "automatic": ("automatic",),
    "head+automatic": ("last_tool", "last_system", "automatic"),
    "none": (),
}
CLIENT_PRESETS = {"claude-code": "claude-code", "opencode": "opencode", "crush": "crush", "qwen-code": "qwen-code"}
"""The preset that stands for what a client sent."""
OTHER_PRESET = "head+automatic"
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9]+")
SHORT = 8


def command_line(replay: SessionReplay, choices: Mapping[str, str], options: Sequence[str]) -> str:
    """The command that prices these choices, with the `options` that were given; "" where there is none.

    Of a log of several sessions, the session is cut out first. There is none for sessions that share several files, and
    where a file holds calls that do not count in the session: copies, and calls without a bill.
    """
    session, files = replay.session, replay.session.files
    names = ",".join(f"{KINDS[kind]}={value}" for kind, value in choices.items())
    asked = ["--jointly", names] if names else []
    if not replay.counts_all or (replay.shares_files and (len(files) > 1 or session.key == files[0])):
        return ""
    if not replay.shares_files:
        return shlex.join(["cachecost", "whatif", *files, *asked, *options])
    cut = shlex.join(["cachecost", "recording", "cut", files[0], "--session", session.key, "-o", CUT_FILE])
    return f"{cut} && {shlex.join(['cachecost', 'whatif', CUT_FILE, *asked, *options])}"


@dataclass(frozen=True, slots=True)
class ScenarioFacts:
    """What a scenario of a what-if says besides the choices: `pings` is how many keep-alives a pause is worth."""

    host: str
    model: str
    pings: int


def scenario_yaml(replay: SessionReplay, choices: Mapping[str, str], facts: ScenarioFacts) -> str:
    """A scenario that plans the session again, as a preset that stands for what was sent and with the choices.

    Its figures are near those of the replay and not the same: a preset is not what was sent.
    """
    return "\n".join(_lines(replay, choices, facts)) + "\n"


def _lines(replay: SessionReplay, choices: Mapping[str, str], facts: ScenarioFacts) -> Iterator[str]:
    session, files = replay.session, replay.session.files
    own = CLIENT_PRESETS.get(session.calls[0].file.client, OTHER_PRESET)
    short = NOT_IN_NAMES.sub("-", session.id[:SHORT]).strip("-")
    changed = " and ".join(f"{KINDS[kind]} {value}" for kind, value in choices.items()) or AS_SENT
    recording = files[0]
    if len(files) > 1:
        recording = CUT_FILE
        yield f"# {shlex.join(['cachecost', 'import', *files, '-o', CUT_FILE])}"
    yield f"# cachecost run FILE.yaml; the breakpoints of {own} stand for those that were sent"
    yield "format: 1"
    yield f"name: session-{short}"
    yield f"question: {dumps(f'What does session {short} cost with {changed}?')}"
    yield f"host: {choices.get('host', facts.host)}"
    yield f"model: {dumps(facts.model)}"
    yield f"conversation: {{recording: {dumps(recording)}}}"
    yield "strategies:"
    yield f"  - {dumps({'name': AS_SENT, **_placement(own)})}"
    if set(choices) - {"host"}:
        yield f"  - {dumps({'name': 'what if', **_strategy(own, choices, facts)})}"
    yield f"compare_to: {AS_SENT}"


def _placement(name: str) -> dict[str, Any]:
    return {"breakpoints": list(OWN_BREAKPOINTS[name])} if name in OWN_BREAKPOINTS else {"preset": name}


def _strategy(own: str, choices: Mapping[str, str], facts: ScenarioFacts) -> dict[str, Any]:
    made = _placement(choices.get("breakpoints", own))
    ttl = choices.get("ttl")
    if ttl in HOUR_LAYERS:
        hour = [{name: {"ttl": "1h"}} for name in HOUR_LAYERS[ttl]]
        made = {"breakpoints": [*hour, *(["last_system"] if len(hour) == 1 else []), "automatic"]}
    elif ttl:
        made["ttl"] = ttl
    if model := choices.get("model"):
        made["model"] = model
    if changes := list(_changes(choices, facts)):
        made["changes"] = changes
    return made


def _changes(choices: Mapping[str, str], facts: ScenarioFacts) -> Iterator[dict[str, Any]]:
    if limit := choices.get("compaction"):
        tokens = int(limit.removesuffix("k")) * (1000 if limit.endswith("k") else 1)
        yield {"compaction": {"at": 1.0, "window_tokens": tokens, "min_turns": 1, "keep_last": 1}}
    if habit := choices.get("keep_alive"):
        every, _, most = habit.partition(":")
        times = int(most) if most else facts.pings
        if times:
            yield {"keep_alive": {"every_s": float(every.removesuffix("s")), "times": times}}
