"""`cachecost check` of an edited agent, in this process; and what it has to say of each fault."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cachecost.cli import exit_code
from cachecost.commands.check import check as command
from planted_agents.costs import Body, Sent, cost, repeated, sent_calls
from planted_agents.edits import ANOTHER_MODEL, Edit

REPORTS = Path("reports")
RECORDING = Path("agent/recording.jsonl")
ONE_RUN = Edit("scenarios/agent.yaml", "  turns:", "  runs: 1\n  turns:")


def check(folder: Path, path: str, *words: str) -> tuple[int, Any]:
    """Exit code and JSON of `cachecost check` in `folder`, with the programs of `path` first."""
    environment = {"PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), patch.dict(os.environ, environment), redirect_stdout(out), redirect_stderr(err):
        code = exit_code(lambda: command.main(["--json", *words], standalone_mode=False))
    assert code in (0, 1), err.getvalue()
    return code, json.loads(out.getvalue())


def another_time(body: Body) -> Body:
    """The body with another time in its system prompt, of as many tokens."""
    block = body["system"][0]
    block["text"] = block["text"].translate(str.maketrans("0123456789", "1234567890"))
    return body


def another_order(body: Body) -> Body:
    """The body with its tools the other way round; the breakpoint stays on the last."""
    body["tools"].reverse()
    body["tools"][-1]["cache_control"] = body["tools"][0].pop("cache_control")
    return body


@dataclass(frozen=True, slots=True)
class Expected:
    """What a fault breaks, the first change of the prompt, and the source line that has `marker` ("": none is found).

    `second_run` makes what the second run sends of what the first one sent, where they differ. Where each run costs
    something else, the dollars are not `exact`.
    """

    broken: frozenset[str]
    kind: str
    path: str
    files: tuple[str, ...] = ()
    marker: str = ""
    second_run: Callable[[Body], Body] | None = None
    exact: bool = True


UNSTABLE = frozenset(("max_regression", "min_cache_hit_rate", "prefix_stable"))
REGRESSION = frozenset(("max_regression",))
EXPECTED = {
    "timestamp": Expected(
        UNSTABLE | {"deterministic"}, "changed", "system.0.text", ("agent.py", "agent.mjs"), "It is now", another_time
    ),
    "tools in the order of a set": Expected(
        frozenset(("deterministic",)), "reordered", "tools", second_run=another_order
    ),
    "tools in a random order each call": Expected(UNSTABLE | {"deterministic"}, "reordered", "tools", exact=False),
    "tools in another order each call": Expected(UNSTABLE, "reordered", "tools"),
    "new tool": Expected(REGRESSION, "added", "tools", ("tools.py", "tools.mjs"), "look_up_title"),
    "moved breakpoint": Expected(REGRESSION | {"min_cache_hit_rate"}, "breakpoint_moved", "messages"),
    "breakpoint on the system prompt alone": Expected(
        REGRESSION | {"min_cache_hit_rate"}, "breakpoint_moved", "tools.3"
    ),
    "longer system prompt": Expected(REGRESSION, "changed", "system.0.text", ("prompt.md",), "## Before you answer"),
    "another model": Expected(REGRESSION, "model_changed", "model", ("agent.py", "agent.mjs"), ANOTHER_MODEL),
}


def verify(fault: str, folder: Path, path: str) -> None:
    """The edited agent in `folder` is found out: what broke, where, and for how many dollars."""
    expected = EXPECTED[fault]
    code, report = check(folder, path)
    assert code == 1
    broken = {one["budget"]: one for one in report["budgets"] if one["verdict"] == "fail"}
    assert set(broken) == expected.broken
    _verify_place(report["prompt_changes"][0]["changes"][0], folder, expected)
    if expected.exact:
        ONE_RUN.apply(folder)
        check(folder, path, "--update", "--reports", "planted")
        _verify_dollars(report, sent_calls(folder / "planted" / RECORDING), folder, expected)


def _verify_dollars(report: Any, calls: Sequence[Sent], folder: Path, expected: Expected) -> None:
    before, now = cost(sent_calls(folder / REPORTS / RECORDING)), cost(calls)
    (session,) = report["sessions"]
    assert (Decimal(session["baseline_usd"]), Decimal(session["cost_usd"])) == (before, now)
    changes = report["prompt_changes"][0]["changes"]
    assert sum((Decimal(one["cost_usd"]) for one in changes), Decimal()) == now - before
    if expected.second_run:
        more = cost(repeated(calls, expected.second_run)) - cost(repeated(calls, lambda body: body))
        (found,) = (one for one in report["budgets"] if one["budget"] == "deterministic")
        assert Decimal(found["changes"][0]["cost_usd"]) == more


def _verify_place(change: Any, folder: Path, expected: Expected) -> None:
    assert (change["kind"], change["path"][: len(expected.path)]) == (expected.kind, expected.path)
    assert (change["file"] in expected.files) == bool(expected.marker), change
    if expected.marker:
        line = (folder / change["file"]).read_text(encoding="utf-8").splitlines()[change["line"] - 1]
        assert expected.marker in line
