"""Faults planted into logs of every host have their cause, call, place and dollars in every command; healthy logs have
none. What a fault costs is simulated: the log with it minus the log without it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from cachecost.account.causes import causes
from cachecost.cli import cachecost
from cachecost.providers.prices import PriceBook
from cachecost.providers.usage import Usage
from cachecost.simulation.engine import SimulatedCall
from conversations.session_stores import write_lines
from hosts.host_models import GPU
from planted.host_logs import (
    CONTROLS,
    FACTORS,
    HOST_FAULTS,
    HOSTS,
    HostFault,
    conversation,
    for_host,
    made,
    paid_again,
    rules_on,
    write_host_log,
)
from planted.logs import in_order
from slow_cases import mostly_slow

NO_BILLS = "none"
BILLS = (*FACTORS, NO_BILLS)
Found = Mapping[str, Any]
HEALTHY = {"hit", "new_content", "cold_start", "warm_start", "ttl_expired"}
CENT = Decimal("0.00002")
"""USD that a few tokens of a clock, a note or a rounding cost."""
SHRINKS = {"results trimmed", "exchange dropped", "compaction"}
"""What is left of the messages is an estimate, and to send all of it again costs something."""
NO_FIX = {"ttl_expired", "concurrent_write", "model_changed", *(HOST_FAULTS[name].cause for name in SHRINKS)}
"""Causes whose fixes cost something, or cannot be known to be possible."""
CONTENT = {"tools", "schemas", "volatile"}


class Answers:
    """What the commands say of one log; each is asked once."""

    def __init__(self, path: Path, host: str) -> None:
        self._path, self._prices = path, path.with_suffix(".toml")
        self._prices.write_text(GPU, encoding="utf-8")
        self._own = ["--prices", str(self._prices)] if host in {"vllm", "sglang"} else []

    def of(self, command: str) -> Any:
        words = [command, str(self._path), "--json", *self._own]
        result = CliRunner().invoke(cachecost, words, catch_exceptions=False)
        assert result.exit_code in {0, 1}, result.output
        if command == "replay":
            return [json.loads(line) for line in result.stdout.splitlines()]
        return json.loads(result.stdout)


def usd(rows: Iterable[Found]) -> Decimal:
    return sum((Decimal(one["cost_usd"]) for one in rows), Decimal())


def losses_of(explained: Found) -> list[Found]:
    """What explain says was paid again, at a profit or not."""
    rows = [*explained["findings"], *explained["notes"], *explained.get("not_explained", ())]
    return [one for one in rows if not (causes()[one["cause"]].unwritten or causes()[one["cause"]].never_cached)]


def wrong_causes(command: str, rows: Iterable[tuple[int, str]], fault: HostFault, host: str) -> Iterator[str]:
    found = dict(rows)
    most = {*fault.calls, *fault.echo}
    if wrong := {call: cause for call, cause in found.items() if cause != fault.cause or call not in most}:
        yield f"{command}: {wrong}"
    if missing := set(fault.calls_on(host)) - set(found):
        yield f"{command}: nothing at {sorted(missing)}"


def problems(folder: Path, fault: HostFault, host: str, bills: str) -> Iterator[str]:
    """What differs from the fault as planted, in words."""
    prices = PriceBook.load(_gpu(folder))
    planted, spared = (
        made(log, host, folder / "made.jsonl", FACTORS.get(bills, {}), prices) for log in fault.logs(host)
    )
    most = {*fault.calls, *fault.echo}
    costs = {call: paid_again(*pair) for call, pair in enumerate(zip(planted, spared, strict=True), 1) if call in most}
    total = sum(costs.values(), Decimal())
    assert all(costs[call] > CENT / 2 for call in fault.calls_on(host)), costs
    is_billed = bills != NO_BILLS
    answers = Answers(
        write_host_log(folder / "log.jsonl", fault.logs(host)[0], host, planted if is_billed else None), host
    )
    explained = answers.of("explain")
    losses = losses_of(explained)
    yield from wrong_causes("explain", ((one["call"], one["cause"]) for one in losses), fault, host)
    replayed = ((call, row["cause"]) for call, row in enumerate(answers.of("replay"), 1))
    yield from wrong_causes(
        "replay", (pair for pair in replayed if pair[1] not in HEALTHY - {fault.cause}), fault, host
    )
    first = min(losses, key=lambda one: int(one["call"]))
    if fault.block and first["block"] != fault.block:
        yield f"explain: at {first['block']}"
    net = usd(explained["findings"])
    least = Decimal(0) if fault.cause in NO_FIX else total * Decimal("0.55")
    more = Decimal("1.2" if fault.name in SHRINKS else "1.03")
    if not least - CENT <= net <= total * more + CENT:
        yield f"explain: ${net} of ${total}"
    if is_billed:
        yield from wrong_bill(answers.of("bill"), explained, losses, fault, host, total, _step_usd(planted, host))
    if fault.lint:
        found = [(one["code"], one["call"], one["path"]) for one in answers.of("lint")["findings"]]
        if not any(code == fault.lint and call in most and at.startswith(fault.block) for code, call, at in found):
            yield f"lint: {found}"
    if fault.change:
        yield from wrong_change(answers.of("whatif"), explained, fault, net)


def wrong_bill(
    bill: Found, explained: Found, losses: list[Found], fault: HostFault, host: str, total: Decimal, step_usd: Decimal
) -> Iterator[str]:
    rewrites = bill["rewrites"]
    yield from wrong_causes("bill", ((one["call"], one["cause"]) for one in rewrites), fault, host)
    by_call = {(one["call"], one["cause"]): one["tokens"] for one in rewrites}
    if by_call != {(one["call"], one["cause"]): one["tokens"] for one in losses}:
        yield f"bill {by_call}, explain {[(one['call'], one['cause'], one['tokens']) for one in losses]}"
    share = Decimal("0.13" if fault.name in SHRINKS else "0.04")
    if abs(usd(rewrites) - total) > share * total + step_usd * len(fault.calls) + CENT:
        yield f"bill: ${usd(rewrites)} of ${total}"
    sums = [(bill["necessary_usd"], bill["rewritten_usd"], bill["billed_usd"])]
    sums += [(explained["necessary_usd"], explained["avoidable_usd"], explained["billed_usd"])]
    if any(Decimal(one) + Decimal(other) != Decimal(both) for one, other, both in sums):
        yield f"sums: {sums}"


def wrong_change(whatif: Found, explained: Found, fault: HostFault, net: Decimal) -> Iterator[str]:
    billed = Decimal(explained.get("billed_usd") or whatif["cost_usd"])
    if abs(Decimal(whatif["cost_usd"]) - billed) > billed / 1000:
        yield f"whatif: ${whatif['cost_usd']} now, billed ${billed}"
    for one in whatif["alternatives"]:
        saving = Decimal(one["saving_usd"] or 0)
        if one["name"] == fault.change:
            # the words that a clock had before are dropped there, and kept by explain's fix
            if one["supported"] != "yes" or not net * Decimal("0.55") < saving < net * Decimal("1.1") + CENT:
                yield f"whatif: {one['name']} saves ${saving} ({one['supported']}), explain ${net}"
        elif one["kind"] in CONTENT and one["kind"] != fault.change.partition("=")[0] and saving > 5 * CENT:
            yield f"whatif: {one['name']} saves ${saving}, too"


def _gpu(folder: Path) -> Path:
    path = folder / "gpu.toml"
    path.write_text(GPU, encoding="utf-8")
    return path


def _step_usd(planted: list[SimulatedCall], host: str) -> Decimal:
    """USD of the tokens of one step of the host."""
    prices = next(one.prices for one in planted if one.prices)
    return prices.total_cost(Usage(max(rules_on(host).step_tokens, rules_on(host).reported_step_tokens)))


PLANTED = [
    (name, host, bills) for name, fault in HOST_FAULTS.items() for host in HOSTS if fault.is_on(host) for bills in BILLS
]
HEALTHY_LOGS = [(name, host, bills) for name in CONTROLS for host in HOSTS for bills in BILLS]


@pytest.mark.parametrize(("name", "host", "bills"), mostly_slow(PLANTED, 60, pytest.mark.long))
def test_a_planted_fault_is_found_with_its_dollars(tmp_path: Path, name: str, host: str, bills: str) -> None:
    assert list(problems(tmp_path, HOST_FAULTS[name], host, bills)) == []


@pytest.mark.parametrize(("name", "host", "bills"), mostly_slow(HEALTHY_LOGS, 16, pytest.mark.long))
def test_a_healthy_log_has_no_cause_and_no_change(tmp_path: Path, name: str, host: str, bills: str) -> None:
    log = for_host(CONTROLS[name](), host)
    billed = made(log, host, tmp_path / "made.jsonl", FACTORS.get(bills, {}), PriceBook.load(_gpu(tmp_path)))
    answers = Answers(write_host_log(tmp_path / "log.jsonl", log, host, None if bills == NO_BILLS else billed), host)
    bill, explained = answers.of("bill"), answers.of("explain")
    assert {one["cause"] for one in (*bill["rewrites"], *losses_of(explained))} <= {"ttl_expired"}
    assert bill["advice"] == []
    assert {one["cause"] for one in answers.of("replay")} <= HEALTHY
    assert [one for one in answers.of("lint")["findings"] if one["severity"] != "note"] == []
    gains = [
        one for one in answers.of("whatif")["alternatives"] if one["kind"] in CONTENT and one["supported"] == "yes"
    ]
    assert all(Decimal(one["saving_usd"]) <= 0 for one in gains), gains


EDITS = [fault for fault in HOST_FAULTS.values() if fault.base is conversation and fault.cause not in {"compaction"}]


def random_lines(seed: int, folder: Path) -> tuple[str, list[dict[str, Any]]]:
    """A host, and the lines of a log of it: two conversations, some with faults, billed by its rules."""
    dice = Random(seed)
    host = dice.choice(list(HOSTS))
    log = conversation(5)
    for fault in dice.sample([one for one in EDITS if one.is_on(host)], dice.randint(0, 3)):
        log = fault.plant(log)
    log = for_host(in_order([*log, *conversation(3, topic="two", begin=dice.choice((3.0, 400.0)))]), host)
    factors = FACTORS[dice.choice(list(FACTORS))]
    billed = made(log, host, folder / "made.jsonl", factors, PriceBook.load(_gpu(folder)))
    path = write_host_log(folder / "log.jsonl", log, host, billed)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return host, [{**line, "id": f"call-{number}"} for number, line in enumerate(lines) if not billed[number].row.error]


def paid(path: Path, host: str) -> set[tuple[str, str, int, str]]:
    """What bill says of each call, by its time."""
    return {
        (one["time"], one["cause"], one["tokens"], one["cost_usd"])
        for one in Answers(path, host).of("bill")["rewrites"]
    }


@given(seed=st.integers(0, 10_000))
@settings(max_examples=5, deadline=None)
def test_the_layout_of_a_log_changes_no_cause(seed: int) -> None:
    """Its order, its files, the ids in it, and a call of another session between its own."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        host, lines = random_lines(seed, folder)
        expected = paid(write_lines(folder / "log.jsonl", lines), host)
        mixed = Random(seed).sample(lines, len(lines))
        assert paid(write_lines(folder / "log.jsonl", mixed), host) == expected
        renamed = [{**line, "id": f"x{line['id'][::-1]}"} for line in lines]
        assert paid(write_lines(folder / "log.jsonl", renamed), host) == expected
        parts = folder / "parts"
        parts.mkdir()
        for part in range(2):
            write_lines(parts / f"{part}.jsonl", lines[part::2])
        assert paid(parts, host) == expected
        cold = dict.fromkeys(("input_tokens", "output_tokens"), 900)
        asked = {"role": "user", "content": "Something else altogether. " * 200}
        apart = {**lines[0], "usage": cold, "session": "apart", "id": "apart"}
        apart["request"] = {"model": lines[0]["request"]["model"], "max_tokens": 5, "messages": [asked]}
        assert paid(write_lines(folder / "log.jsonl", [apart, *lines]), host) == expected


@given(seed=st.integers(0, 10_000))
@settings(max_examples=8, deadline=None)
def test_findings_never_exceed_what_could_be_saved(seed: int) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        host, lines = random_lines(seed, folder)
        explained = Answers(write_lines(folder / "log.jsonl", lines), host).of("explain")
        billed, bound = Decimal(explained["billed_usd"]), Decimal(explained["lower_bound_usd"])
        assert usd(explained["findings"]) == Decimal(explained["avoidable_usd"]) <= billed - bound
        assert billed == Decimal(explained["necessary_usd"]) + Decimal(explained["avoidable_usd"]) + Decimal(
            explained["not_explained_usd"]
        )
