"""Two runs of a command that differ: the place, the kind and the dollars."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from agent_projects import agent_project, check


@pytest.mark.parametrize(
    ("mode", "path", "kind"),
    [
        ("time", "system.0.text", "time"),
        ("id", "system.0.text", "id"),
        ("set", "system.0.text", "order"),
        ("tools", "tools.1", "order"),
    ],
)
def test_what_is_not_deterministic_is_named(tmp_path: Path, mode: str, path: str, kind: str) -> None:
    agent_project(tmp_path, mode, turns=("Hello",))
    files = ("--junit", "j.xml", "--markdown", "m.md", "--sarif", "s.sarif")
    code, out, _ = check(tmp_path, "--update", *files, "--github")
    assert code == 1
    first = out.splitlines()[0]
    differs = f"two runs differ in {path} ({kind}) from call 1 on"
    assert first.startswith(f"✗ mine: as recorded is not deterministic: {differs}")
    assert re.search(r"; the second costs \$0\.\d+ more for it\.$", first)
    assert not re.search(r"costs \$0\.0+ more", first)
    for name in ("j.xml", "m.md", "s.sarif"):
        assert f"two runs differ in {path} ({kind})" in (tmp_path / name).read_text()
    assert "::error file=scenarios/mine.yaml,line=3,col=16,title=cachecost deterministic::" in out


def test_the_places_are_in_the_json(tmp_path: Path) -> None:
    agent_project(tmp_path, "id", turns=("Hello",))
    found = json.loads(check(tmp_path, "--json")[1])
    (verdict,) = [one for one in found["budgets"] if one["budget"] == "deterministic"]
    said = [verdict[name] for name in ("strategy", "limit", "actual", "verdict")]
    assert said == ["as recorded", "0", "1", "fail"]
    (change,) = verdict["changes"]
    assert (change["call"], change["calls"], change["layer"], change["block"]) == (1, 3, "system", "system.0")
    assert re.fullmatch(r"system\.0\.text, character 7,\d{3} \(id\): “….+”, then “….+”", change["what"])
    assert Decimal(change["cost_usd"]) > 0


@pytest.mark.parametrize("options", [{"runs": 1}, {"mode": "plain"}])
def test_nothing_to_find(tmp_path: Path, options: dict[str, Any]) -> None:
    agent_project(tmp_path, **{"mode": "id", **options})
    assert check(tmp_path, "--update")[0] == 0
