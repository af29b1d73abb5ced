"""Baselines: a line a figure, equal bytes for equal figures; what makes one say nothing; since when it costs more."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from cachecost.base.atomic_files import write_together
from cachecost.base.errors import InputError
from cachecost.budgets.baseline import LARGEST, Baseline, baseline_of, baseline_text, is_same_but_day, read_baseline
from cachecost.budgets.check import BudgetResult, CheckOptions, check_scenarios
from cachecost.budgets.strategy_replays import replay_strategies
from cachecost.budgets.verdicts import Verdict
from cachecost.scenario import load
from cachecost.views.check.json_output import check_object
from cachecost.views.check.text import text_lines
from check_projects import Body, Spoil, modified_tool, project, reordered, spoiled, timestamp

DAY = date(2026, 11, 20)
ROOT = Path(__file__).parent.parent


def lines_of(result: BudgetResult) -> list[str]:
    """What `check` prints."""
    return text_lines(check_object(result))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The baseline of the project."""
    check_scenarios([project(tmp_path)], CheckOptions(tmp_path / "reports", update=True, today=DAY))
    return tmp_path / "reports" / "mine" / "baseline.json"


def regression(result_path: Path, reports: Path) -> Verdict:
    (verdict,) = check_scenarios([result_path], CheckOptions(reports)).budgets
    return verdict


# ------------------------------------------------------------------------------------------- the file


def test_a_figure_and_a_call_a_line(path: Path) -> None:
    lines = [line.strip() for line in path.read_text().splitlines()]
    assert '"cost_usd": "0.20451125",' in lines
    assert [line.split(" ")[2:] for line in lines if line.startswith('"6 ')] == [
        ["21559", "696", "100", '0.0176295"']
    ] * 2
    assert max(map(len, lines)) < 100
    assert not any("agent" in line or "fs_" in line for line in lines), "no word of what was sent"


def test_equal_figures_are_equal_bytes_and_keep_their_day(path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    result = check_scenarios(
        [tmp_path / "mine.yaml"], CheckOptions(tmp_path / "reports", update=True, today=date(2027, 1, 1))
    )
    assert (result.updated, path.read_bytes()) == ([], before)
    project(tmp_path, modified_tool)
    result = check_scenarios(
        [tmp_path / "mine.yaml"], CheckOptions(tmp_path / "reports", update=True, today=date(2027, 1, 1))
    )
    assert result.updated == [path] and b'"accepted": "2027-01-01"' in path.read_bytes()
    assert [found.name for found in path.parent.iterdir()] == ["baseline.json"]


def test_what_is_written_is_read(path: Path) -> None:
    baseline = read_baseline(path)
    assert baseline is not None and baseline.accepted == DAY
    assert baseline_text(baseline) == path.read_text()


def test_no_file_is_no_baseline(tmp_path: Path) -> None:
    assert read_baseline(tmp_path / "baseline.json") is None


@pytest.mark.slow
def test_bundled_baselines_stay_small() -> None:
    scenario = load(ROOT / "scenarios" / "answer-inquiry.yaml")
    text = baseline_text(baseline_of(scenario, list(replay_strategies(scenario, ROOT / "scenarios"))))
    assert LARGEST / 2 < len(text) <= LARGEST


COST = 'strategies.progressive.cost_usd: expected dollars as text, like "24.1"; got'
DAMAGES: list[tuple[Callable[[str], str], str]] = [
    (lambda text: "{", "1:2 not valid YAML: expected the node content, but found '<stream end>'"),
    (lambda text: "", "1:1 expected a mapping; got an empty file"),
    (lambda text: text.replace('"format": 2', '"format": 3'), "4:2 format: expected 2; got 3"),
    (
        lambda text: text.replace('"format": 2', '"format": 1'),
        "4:2 format: expected 2; got 1, from an older cachecost: rewrite it with `cachecost check --update`",
    ),
    (lambda text: text.replace("2026-11-20", "last week"), "2:2 accepted: expected a day like"),
    (
        lambda text: text.replace(' "host": "anthropic",\n "model"', ' "hots": "anthropic",\n "model"'),
        "5:2 hots: unknown key (did you mean 'host'?)",
    ),
]


@pytest.mark.parametrize(("damage", "fault"), DAMAGES)
def test_a_damaged_baseline_is_faults_with_their_lines(path: Path, damage: Callable[[str], str], fault: str) -> None:
    path.write_text(damage(path.read_text()), encoding="utf-8")
    with pytest.raises(InputError) as raised:
        read_baseline(path)
    assert any(str(found).startswith(f"{path}:{fault}") for found in raised.value.faults), str(raised.value)


def test_all_faults_of_a_baseline_at_once(path: Path) -> None:
    text = path.read_text().replace('"cost_usd": "0.20451125"', '"cost_usd": -1').replace(".2266 0 ", ".2266 ")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        read_baseline(path)
    messages = [fault.message for fault in raised.value.faults]
    assert sum("expected dollars as text" in one for one in messages) == 2
    assert sum('expected a line like "18 9f3a2b1c.12ab 26021 410 310 0.1234"' in one for one in messages) == 1


def test_a_damaged_baseline_can_be_updated(path: Path, tmp_path: Path) -> None:
    before = path.read_text()
    path.write_text("{", encoding="utf-8")
    check_scenarios([tmp_path / "mine.yaml"], CheckOptions(tmp_path / "reports", update=True, today=DAY))
    assert path.read_text() == before


def test_a_write_that_breaks_off_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = read_baseline(path)
    assert old is not None

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InputError, match=r"cannot be written: No space left on device"):
        write_together({path: baseline_text(old.model_copy(update={"model": "another"})).encode()})
    assert read_baseline(path) == old
    assert [found.name for found in path.parent.iterdir()] == ["baseline.json"]


# ------------------------------------------------------------------------------------- not comparable

LEAD = "as recorded cannot be compared with its baseline, because more than the prompts changed: "
OTHERWISE: list[tuple[str, str, str]] = [
    ("as_of: 2026-03-07", "as_of: 2026-03-08", "as_of 2026-03-07, now 2026-03-08."),
    ("opus-4-6", "opus-4-5", "model claude-opus-4-6, now claude-opus-4-5."),
    ("anthropic", "bedrock", "host anthropic, now bedrock."),
    ("tokens: bytes", "tokens: tiktoken", "tokens counted by bytes of compact JSON, now by "),
    (
        "tokens: bytes",
        "tokens: bytes\nrules: {ttl_in_key: true}",
        "ttl in key of claude-opus-4-6 none, now True.",
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), OTHERWISE)
def test_what_else_changed_makes_a_baseline_not_comparable(
    path: Path, tmp_path: Path, old: str, new: str, expected: str
) -> None:
    scenario = tmp_path / "mine.yaml"
    text = scenario.read_text().replace("model:", "host: anthropic\nmodel:")
    scenario.write_text(text.replace(old, new))
    verdict = regression(scenario, tmp_path / "reports")
    assert (verdict.verdict, verdict.actual) == ("not_comparable", None)
    assert verdict.message.startswith(LEAD + expected), verdict.message


EDITS: list[tuple[str, str, str]] = [
    ('"write_5m": "6.25"', '"write_5m": "6.5"', "the write 5m price of claude-opus-4-6 6.5, now 6.25."),
    ('"lookback_positions": "20"', '"lookback_positions": "30"', "lookback positions of claude-opus-4-6 30, now 20."),
    ('"hidden tokens": "', '"hidden tokens": "0', "hidden tokens of claude-opus-4-6 0"),
]


@pytest.mark.parametrize(("now", "before", "expected"), EDITS)
def test_prices_and_rules_under_the_baseline(path: Path, tmp_path: Path, now: str, before: str, expected: str) -> None:
    """As if the baseline had been made under other prices or rules: its records, and so their digests, are others."""
    text = path.read_text().replace(now, before)
    kept = json.loads(text)
    for table in ("prices", "rules"):
        (digest,) = kept[table]
        text = text.replace(digest, digest[::-1]) if before in json.dumps(kept[table]) else text
    path.write_text(text)
    verdict = regression(tmp_path / "mine.yaml", tmp_path / "reports")
    assert verdict.verdict == "not_comparable" and verdict.message.startswith(LEAD + expected), verdict.message


@pytest.mark.parametrize(("default", "verdict"), [("'lookback'", "pass"), ("'exact'", "not_comparable")])
def test_a_rule_that_came_later_is_at_its_default_in_an_older_baseline(
    path: Path, tmp_path: Path, default: str, verdict: str
) -> None:
    """Another release knows more rules; what it adds must not make every baseline worthless."""
    kept = json.loads(path.read_text())
    (digest,) = kept["rules"]
    record = kept["rules"].pop(digest)
    later = {name: value for name, value in record.items() if name != "finds"}
    other = {} if default == "'lookback'" else {"finds": "exact"}
    kept["rules"] = {digest[::-1]: {**later, **other}}
    path.write_text(json.dumps(kept).replace(digest, digest[::-1]))
    assert regression(tmp_path / "mine.yaml", tmp_path / "reports").verdict == verdict


def test_an_own_price_file_is_not_comparable(path: Path, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN_PRICES)
    scenario = tmp_path / "mine.yaml"
    scenario.write_text(scenario.read_text() + "prices: own.toml\n")
    verdict = regression(scenario, tmp_path / "reports")
    assert verdict.message == (
        LEAD + "the input price of claude-opus-4-6 5, now 4; the read price of claude-opus-4-6 0.5, now 0.4; "
        "the write 1h price of claude-opus-4-6 10, now 8; the write 5m price of claude-opus-4-6 6.25, now 5."
    )


OWN_PRICES = """\
[[price]]
host = "anthropic"
model = "claude-opus-4-6"
input = 4
read = 0.4
write_5m = 5
write_1h = 8
output = 25
from = 2026-01-01
source = "a contract"
"""


def test_versions_of_the_data_alone_change_nothing(path: Path, tmp_path: Path) -> None:
    baseline = read_baseline(path)
    assert baseline is not None
    versions = {"cachecost": "9.9", "rules": "2030-01-01", "prices": "others", "tiktoken": "1.0"}
    changed = baseline.model_copy(update={"versions": versions})
    assert not is_same_but_day(path, changed)
    path.write_text(baseline_text(changed))
    assert regression(tmp_path / "mine.yaml", tmp_path / "reports").verdict == "pass"


def test_equal_prompts_that_are_counted_otherwise(path: Path, tmp_path: Path) -> None:
    path.write_text(path.read_text().replace(" 21559 696 ", " 21500 696 "))
    verdict = regression(tmp_path / "mine.yaml", tmp_path / "reports")
    assert verdict.message == LEAD + "the token counts of identical prompts changed."


def test_a_strategy_that_is_new_is_not_in_the_baseline(path: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "mine.yaml"
    text = scenario.read_text().replace("[progressive]", "[progressive, none]").replace("as recorded", "none")
    scenario.write_text(text)
    verdict = regression(scenario, tmp_path / "reports")
    assert (verdict.verdict, verdict.message) == (
        "not_comparable",
        "none is not in the baseline: add it with `cachecost check --update`.",
    )


# ---------------------------------------------------------------------------------------- since when


def lines(folder: Path, spoil: Spoil) -> list[str]:
    return lines_of(spoiled(folder, spoil, accepted=DAY))


def test_a_tool_that_changed_in_the_middle(tmp_path: Path) -> None:
    assert lines(tmp_path, modified_tool) == [
        "✗ mine: as recorded costs $0.32, 57% more than the baseline of 2026-11-20 ($0.20); the limit is 5%.",
        "  since call 4: tool fs_modify_file changed (description, character 213) → tools, system and messages "
        "written again: $0.12 [CC105]",
        "  and 2 more calls: $0.00001",
        f"  accept it with: cachecost check --update {tmp_path}/mine.yaml",
    ]


def test_a_timestamp_in_the_system_prompt(tmp_path: Path) -> None:
    first, since, *_ = lines(tmp_path, timestamp)
    assert first == (
        "✗ mine: as recorded costs $0.79, 284% more than the baseline of 2026-11-20 ($0.20); the limit is 5%."
    )
    assert since == (
        "  since call 2: system block 1 changed (…nt time: 2026-03-06T21:2▮2. You are a, character 29) → "
        "tools, system and messages written again in 5 calls: $0.58 [CC110]"
    )


def test_tools_in_another_order(tmp_path: Path) -> None:
    first, since, *_ = lines(tmp_path, reordered)
    assert first.startswith("✗ mine: as recorded costs $0.45, 119% more than the baseline of 2026-11-20 ($0.20)")
    assert since == (
        "  since call 2: the order of the tools changed (tool fs_list is now number 1) → "
        "tools, system and messages written again in 5 calls: $0.24 [CC105]"
    )


def from_the_start(change: Callable[[Body], None]) -> Spoil:
    return lambda number, body: change(body)


def longer_system(body: Body) -> None:
    body["system"][0]["text"] *= 3


def one_tool_more(body: Body) -> None:
    body["tools"].append({**body["tools"][0], "name": "fs_move"})


def longer_tool(body: Body) -> None:
    body["tools"][1]["description"] *= 3


def longer_question(body: Body) -> None:
    body["messages"][0]["content"][0]["text"] *= 30


def other_thinking(body: Body) -> None:
    body["thinking"] = {"type": "enabled", "budget_tokens": 500}
    longer_question(body)


def hour(body: Body) -> None:
    for block in (body["system"][1], body["messages"][-1]["content"][-1]):
        block["cache_control"] = {"type": "ephemeral", "ttl": "1h"}


FROM_THE_START: list[tuple[Callable[[Body], None], str]] = [
    (longer_system, "since call 1: system block 1 differs from the baseline (25,225 tokens instead of 8,425) → "),
    (one_tool_more, "since call 1: 4 tools instead of 3 → "),
    (longer_tool, "since call 1: tool fs_modify_file differs from the baseline (9,811 tokens instead of 3,331"),
    (longer_question, "since call 1: messages differ from the baseline → "),
    (other_thinking, "since call 1: thinking differs from the baseline → "),
    (hour, "since call 1: the breakpoints moved since the baseline in 6 calls: $"),
]


@pytest.mark.parametrize(("change", "expected"), FROM_THE_START)
def test_what_is_another_from_the_first_call_on(tmp_path: Path, change: Callable[[Body], None], expected: str) -> None:
    since = lines(tmp_path, from_the_start(change))[1].strip()
    assert since.startswith(expected), since


def test_more_calls_and_fewer(tmp_path: Path) -> None:
    check_scenarios([project(tmp_path)], CheckOptions(tmp_path / "reports", update=True))
    more = check_scenarios([project(tmp_path, calls=8)], CheckOptions(tmp_path / "reports"))
    assert lines_of(more)[1].strip() == "since call 7: calls that are not in the baseline in 2 calls: $0.0363"
    assert more.exit_code == 1
    fewer = check_scenarios([project(tmp_path, calls=5)], CheckOptions(tmp_path / "reports"))
    assert fewer.exit_code == 0
    assert fewer.budgets[0].message == "as recorded costs $0.19, 8.6% less than the baseline ($0.20); the limit is 5%."


def test_several_calls_a_line(tmp_path: Path) -> None:
    """A file that is thinned out tells between which calls it began."""
    path = project(tmp_path)
    scenario = load(path)
    baseline = baseline_of(scenario, list(replay_strategies(scenario, tmp_path)))
    figures = {name: _thin(one) for name, one in baseline.model_dump(mode="json")["strategies"].items()}
    thin = Baseline.model_validate({**baseline.model_dump(mode="json"), "strategies": figures})
    write_together({tmp_path / "reports" / "mine" / "baseline.json": baseline_text(thin).encode()})
    assert regression(path, tmp_path / "reports").verdict == "pass"
    (verdict,) = check_scenarios([project(tmp_path, late_question)], CheckOptions(tmp_path / "reports")).budgets
    assert (verdict.changes[0].call, verdict.changes[0].last) == (4, 6)


def late_question(number: int, body: Body) -> None:
    if number >= 5:
        body["messages"][-1 if number == 5 else -3]["content"][0]["text"] *= 20


def _thin(figures: dict[str, object]) -> dict[str, object]:
    """The same figures with three calls a line; digests of lines are not asked for by what differs in dollars."""
    rows = figures["rows"]
    assert isinstance(rows, list)
    thin = []
    for start in range(0, len(rows), 3):
        parts = [row.split(" ") for row in rows[start : start + 3]]
        sums = [str(sum(Decimal(part[at]) for part in parts)) for at in range(2, 6)]
        thin.append(" ".join([parts[0][0], parts[0][1], *sums]))
    return {**figures, "rows": thin, "calls_a_row": 3}


def test_files_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "new" / "second").mkdir(parents=True)
    files = {tmp_path / "new" / "first": b"1", tmp_path / "new" / "second": b"2"}
    with pytest.raises(InputError, match=r"/new/second cannot be written: Is a directory"):
        write_together(files)
    assert [one.name for one in (tmp_path / "new").iterdir()] == ["second"]
    (tmp_path / "new" / "second").rmdir()
    write_together(files)
    assert [path.read_bytes() for path in files] == [b"1", b"2"]
