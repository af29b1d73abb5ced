"""An agent that sends something else than was accepted: what changed, where in its code, and what it costs."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from agent_projects import agent_project, check

RULE = "Always name the file that you quote. "


def changed(folder: Path, content: str, old: str, new: str) -> tuple[int, Any]:
    """The exit code and JSON of a check, after a change of the agent's code."""
    agent_project(folder, turns=("Hello",), runs=1, content=content)
    assert check(folder, "--update")[0] == 0
    agent = folder / "agent.py"
    text = agent.read_text()
    assert text.count(old) == 1
    agent.write_text(text.replace(old, new))
    code, out, _ = check(folder, "--json")
    return code, json.loads(out)


@pytest.mark.parametrize("content", ["keep", "digest"])
def test_a_longer_system_prompt_is_red_at_its_line(tmp_path: Path, content: str) -> None:
    code, told = changed(tmp_path, content, '"text": system_prompt()', f'"text": "{RULE}" * 40 + system_prompt()')
    (comparison,) = told["prompt_changes"]
    (one,) = comparison["changes"]
    (session,) = told["sessions"]
    assert code == 1 and one["kind"] == "changed" and one["tokens_after"] > one["tokens_before"]
    assert Decimal(one["cost_usd"]) == Decimal(session["cost_usd"]) - Decimal(session["baseline_usd"]) > 0
    assert comparison["rest"] == {"cost_usd": "0", "answers_usd": "0"}
    if content == "digest":
        assert (one["path"], one["before"], one["after"], one["file"]) == ("system.0", None, None, None)
    else:
        assert (one["path"], one["character"], one["file"]) == ("system.0.text", 0, "agent.py")
        assert RULE in (tmp_path / "agent.py").read_text().splitlines()[one["line"] - 1]
        assert one["after"].startswith("Always name the file")


def test_a_new_tool_is_named(tmp_path: Path) -> None:
    _, told = changed(tmp_path, "keep", '"show_tree"]', '"show_tree", "delete_file"]')
    (one,) = told["prompt_changes"][0]["changes"]
    assert (one["path"], one["kind"]) == ("tools.4", "added")
    assert (one["name"], one["file"]) == ("delete_file", "agent.py") and Decimal(one["cost_usd"]) > 0


def test_what_is_sent_alike_is_no_change(tmp_path: Path) -> None:
    code, told = changed(tmp_path, "keep", "import uuid\n", "import uuid  # another comment\n")
    (comparison,) = told["prompt_changes"]
    assert (code, comparison["changes"], comparison["cost_usd"]) == (0, [], "0")
