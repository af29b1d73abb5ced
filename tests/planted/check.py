"""What `cachecost explain --json` says of a log, beside what the planted faults are worth."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from cachecost.cli import cachecost
from planted.fault import Fault, Range

Found = dict[str, Any]
Codes = tuple[str, ...]


def asked(command: str, *arguments: object) -> str:
    """The JSON that a command prints, with bytes as tokens."""
    words = [command, "--json", "--tokens", "bytes", *map(str, arguments)]
    result = CliRunner().invoke(cachecost, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def explained(path: Path) -> Found:
    found: Found = json.loads(asked("explain", path))
    return found


def causes_replayed(path: Path) -> list[str]:
    """The cause of each call that `replay` names."""
    return [json.loads(line)["cause"] for line in asked("replay", path).splitlines()]


def problems(found: Found, faults: Sequence[Fault], expected: Mapping[Codes, Range], alone: bool = True) -> list[str]:
    """What differs, in words; nothing when every fault is found with its code, calls, place and dollars.

    Faults that are not `alone` in a log may hide one another at some of their calls.
    """
    by_code: dict[Codes, list[Found]] = defaultdict(list)
    for finding in found["findings"]:
        by_code[next((codes for codes in expected if finding["code"] in codes), (finding["code"],))].append(finding)
    wrong = [f"{codes[0]} was not planted" for codes in by_code if codes not in expected]
    for codes, limits in expected.items():
        own = [fault for fault in faults if fault.codes == codes]
        wrong += _problems_of(codes[0], by_code[codes], own, limits, alone)
    return wrong


def _problems_of(code: str, findings: list[Found], faults: list[Fault], limits: Range, alone: bool) -> Iterator[str]:
    low, high = limits
    dollars = sum((Decimal(finding["cost_usd"]) for finding in findings), Decimal())
    if not (low <= dollars <= high or (high <= 0 and not findings)):
        yield f"{code} ${dollars}, not ${low}" + (f" to ${high}" if high > low else "")
    calls = {finding["call"] for finding in findings}
    least = {call for fault in faults for call in fault.calls}
    most = least | {call for fault in faults for call in fault.echo}
    if not calls <= most or (alone and not least <= calls):
        yield f"{code} at calls {sorted(calls)}, not {sorted(least)}"
    if alone and findings and findings[0]["block"] != faults[0].block:
        yield f"{code} at {findings[0]['block']}, not {faults[0].block}"
