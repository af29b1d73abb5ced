"""What `cachecost explain --json` says of a log, beside what the planted faults are worth."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from cachecost.cli import cachecost
from planted.fault import Codes, Expected, Fault, Range
from planted.logs import Log, write_log
from planted.recorded import is_recorded, write_recording

Found = dict[str, Any]


def asked(command: str, *arguments: object, tokens: str | None = "bytes") -> str:
    """The JSON that a command prints."""
    words = [command, "--json", *(["--tokens", tokens] if tokens else []), *map(str, arguments)]
    result = CliRunner().invoke(cachecost, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def written(path: Path, log: Log) -> Path:
    """The log as a file: a request log, or a recording without content."""
    return write_recording(path, log) if is_recorded(log) else write_log(path, log)


def explained(path: Path) -> Found:
    found: Found = json.loads(asked("explain", path))
    return found


def causes_replayed(path: Path) -> list[str]:
    """The cause of each call that `replay` names."""
    return [json.loads(line)["cause"] for line in asked("replay", path).splitlines()]


def problems(found: Found, faults: Sequence[Fault], expected: Expected) -> list[str]:
    """What differs, in words; nothing when every fault is found with its code, calls, place and dollars."""
    by_codes: dict[Codes, list[Found]] = defaultdict(list)
    for finding in found["findings"]:
        own = (codes for codes in expected.by_codes if finding["code"] in codes)
        by_codes[next(own, (finding["code"],))].append(finding)
    wrong = [f"{codes[0]} was not planted" for codes in by_codes if codes not in expected.by_codes]
    wrong += _wrong_dollars("all", found["findings"], expected.total)
    for codes, limits in expected.by_codes.items():
        own_faults = [fault for fault in faults if fault.codes == codes]
        wrong += _wrong_places(codes, by_codes[codes], own_faults, is_alone=len(faults) == 1)
        wrong += _wrong_dollars(codes[0], by_codes[codes], limits) if expected.is_exact else []
    return wrong


def _wrong_dollars(name: str, findings: list[Found], limits: Range) -> Iterator[str]:
    low, high = limits
    dollars = sum((Decimal(finding["cost_usd"]) for finding in findings), Decimal())
    if not (low <= dollars <= high or (high <= 0 and not findings)):
        yield f"{name} ${dollars}, not ${low}" + (f" to ${high}" if high > low else "")


def _wrong_places(codes: Codes, findings: list[Found], faults: list[Fault], is_alone: bool) -> Iterator[str]:
    """Faults that are not alone in a log may hide one another at some of their calls."""
    calls = {finding["call"] for finding in findings}
    least = {call for fault in faults for call in fault.calls}
    most = least | {call for fault in faults for call in fault.echo}
    if not calls <= most or (is_alone and not least <= calls):
        yield f"{codes[0]} at calls {sorted(calls)}, not {sorted(least)}"
    first = min(findings, key=lambda finding: (codes.index(finding["code"]), finding["call"]), default=None)
    if is_alone and first and faults[0].block not in ("", first["block"]):
        yield f"{codes[0]} at {first['block']}, not {faults[0].block}"
