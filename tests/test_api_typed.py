"""The public names: few, light to import, and typed, as a user's own strict mypy sees them."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cachecost

ROOT = Path(__file__).parents[1]
HEAVY = ("numpy", "pandas", "matplotlib", "tiktoken", "pydantic", "click", "jinja2", "rich")
PUBLIC = [
    "Alternatives", "BillResult", "CannotEvaluate", "CheckResult", "Conversation", "ExplainResult",
    "InputError", "LintFinding", "LintResult", "Monthly", "NextResult", "OptimizeResult", "Projection", "Recording",
    "Replay", "Result", "ValidationResult", "bill", "check", "compare", "explain", "lint", "next_message", "optimize",
    "read", "replay", "validate", "whatif",
]  # fmt: skip
PROGRAM = """\
from decimal import Decimal

import cachecost
import pandas as pd
from matplotlib.figure import Figure


def cheapest(path: str) -> tuple[str, Decimal]:
    session = cachecost.read(path, tools_tokens=21_000)
    if isinstance(session, cachecost.Conversation):
        print(len(session.replies))
    result = cachecost.compare(session, ["none", {"name": "mine", "breakpoints": ["automatic"]}], as_of="2026-03-07")
    frame: pd.DataFrame = result.frame()
    figure: Figure = result.plot("question")
    month: Decimal = result.monthly(sessions_per_day=40)["mine"].high
    print(frame, figure, month, cachecost.replay(session, "automatic", tokens="bytes").cost.total)
    return result.best.strategy, result.best.cost.total


def others(log: str) -> list[str]:
    exact: int = cachecost.validate(log, assumptions=True).score.exact_hits
    billed: Decimal = cachecost.bill(log, project="shop").total.cost
    print(billed, cachecost.bill().frame("month"), cachecost.bill(log, as_of="2026-03-07").rewrites())
    avoidable: Decimal = cachecost.explain(log, rules={"ttl_in_key": True}).avoidable
    lower_bound: Decimal = cachecost.optimize(log, pings=False).lower_bound
    gains: list[str] = [one.name for one in cachecost.whatif(log).gains]
    codes: list[str] = [one.code for one in cachecost.lint({"model": "m", "messages": []})]
    now: Decimal | None = cachecost.next_message(log, new_tokens=200, models=["claude-opus-4-6"], tokens="bytes").cost
    broken: int = len(cachecost.check(["a.yaml"], reports="r").failures)
    print(exact, avoidable, lower_bound, broken, now)
    return gains + codes
"""
WRONG = """\
import cachecost

cachecost.compare(["none"])
cachecost.replay("log.jsonl", tokens="tikoken")
cachecost.replay("log.jsonl", modle="m")
cachecost.compare("log.jsonl", ["none"]).plot("bars")
cachecost.read("log.jsonl").nothing
"""


def test_the_public_names_are_these() -> None:
    assert cachecost.__all__ == PUBLIC
    assert dir(cachecost) == sorted([*PUBLIC, "__version__"])
    names: dict[str, object] = {}
    exec("from cachecost import *", names)
    assert sorted(set(names) - {"__builtins__"}) == PUBLIC


def test_what_is_public_is_documented() -> None:
    for name in PUBLIC:
        public = getattr(cachecost, name)
        assert (public.__doc__ or "").strip(), name
        for method, value in inspect.getmembers(public, inspect.isfunction) if inspect.isclass(public) else ():
            if not method.startswith("_") and value.__module__.startswith("cachecost.api"):
                assert value.__doc__ and "->" in str(inspect.signature(value)), f"{name}.{method}"


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'cachecost' has no attribute 'comparee'"):
        getattr(cachecost, "comparee")  # noqa: B009


def _loaded(program: str) -> set[str]:
    told = f"{program}; import sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_cachecost_is_light() -> None:
    assert not _loaded("import cachecost") & {*HEAVY, "cachecost.api"}


def test_using_it_loads_no_chart_and_no_frame() -> None:
    assert not _loaded("from cachecost import *") & {"matplotlib", "pandas", "rich", "starlette", "anthropic", "click"}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    """The lines that a user's strict mypy finds fault with, by file: one run, since it reads all of the library."""
    folder = tmp_path_factory.mktemp("typed")
    for name, text in (("right.py", PROGRAM), ("wrong.py", WRONG)):
        (folder / name).write_text(text, encoding="utf-8")
    options = ["--strict", "--follow-imports=silent", "--ignore-missing-imports", "--no-error-summary"]
    options += ["--cache-dir", str(ROOT / ".mypy_cache" / "users"), "right.py", "wrong.py"]
    done = subprocess.run([sys.executable, "-m", "mypy", *options], cwd=folder, capture_output=True, text=True)
    found = re.findall(r"^(\S+\.py):(\d+): error:", done.stdout, re.MULTILINE)
    assert (done.stderr, done.returncode, {name for name, _ in found} <= {"right.py", "wrong.py"}) == ("", 1, True)
    return {name: sorted({int(line) for file, line in found if file == name}) for name in ("right.py", "wrong.py")}


def test_a_users_program_is_typed_strictly(told: dict[str, list[int]]) -> None:
    assert told["right.py"] == []


def test_a_users_mistakes_are_seen_before_they_run(told: dict[str, list[int]]) -> None:
    assert told["wrong.py"] == [3, 4, 5, 6, 7]
