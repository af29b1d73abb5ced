"""`config`: each setting in force, its value and where it comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cachecost.configuration.project_settings import SETTABLE
from cachecost.configuration.variables import VARIABLES
from command_runs import run_here

TEXT = """\
[project]
name = "mine"

[tool.cachecost]
host = "bedrock"
as_of = 2026-03-07
tokens = "bytes"

[tool.cachecost.rule]
ttl_in_key = true
seed = 3

[tool.cachecost.volumes]
my-agent = 400

[tool.cachecost.replay]
strategy = ["none", "automatic"]
host = "openai"

[tool.cachecost.recording.cut]
calls = "2-"
"""
SHOWN = """\
Settings file: ../pyproject.toml
setting              value                        from
host                 bedrock                      ../pyproject.toml:5
as-of                2026-03-07                   ../pyproject.toml:6
tokens               bytes                        ../pyproject.toml:7, overruled by CACHECOST_TOKENS
rule                 ttl_in_key = true, seed = 3  ../pyproject.toml:9
volumes.my-agent     400                          ../pyproject.toml:14
replay.strategy      none, automatic              ../pyproject.toml:17
replay.host          openai                       ../pyproject.toml:18
recording.cut.calls  2-                           ../pyproject.toml:21
CACHECOST_TOKENS     tiktoken                     environment
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with settings; commands run in a folder below, with one variable set."""
    for one in VARIABLES:
        monkeypatch.delenv(one.name, raising=False)
    monkeypatch.setenv("CACHECOST_TOKENS", "tiktoken")
    (tmp_path / "pyproject.toml").write_text(TEXT)
    (tmp_path / ".git").mkdir()
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    return tmp_path


def printed(*words: str) -> str:
    done = run_here("config", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def settings(*words: str) -> dict[tuple[str | None, str], dict[str, Any]]:
    rows = json.loads(printed("--json", *words))["settings"]
    return {(row["command"], row["key"]): row for row in rows}


def test_what_is_printed() -> None:
    assert printed() == SHOWN


def test_the_same_as_json() -> None:
    whole = json.loads(printed("--json"))
    assert (whole["format"], whole["file"], whole["looked_in"]) == (1, "../pyproject.toml", [".", ".."])
    assert whole["settings"][2] == {
        "command": None,
        "key": "tokens",
        "value": "bytes",
        "origin": "file",
        "place": "../pyproject.toml:7",
        "overruled_by": "CACHECOST_TOKENS",
    }
    values = [row["value"] for row in whole["settings"]]
    assert values[:2] == ["bedrock", "2026-03-07"]
    assert values[3:] == [{"ttl_in_key": True, "seed": 3}, 400, ["none", "automatic"], "openai", "2-", "tiktoken"]


def test_all_shows_every_option_with_its_origin() -> None:
    rows = settings("--all")
    assert {row for row in rows if row[0] in SETTABLE} == {
        (name, key) for name, keys in SETTABLE.items() for key in keys
    }
    assert {key for command, key in rows if command is None and key.isupper()} == {one.name for one in VARIABLES}
    origins = {
        ("bill", "host"): ("bedrock", "file", "../pyproject.toml:5"),
        ("replay", "host"): ("openai", "file", "../pyproject.toml:18"),
        ("replay", "tokens"): (None, "default", None),
        ("serve", "port"): (8787, "default", None),
        ("optimize", "pings"): (True, "default", None),
        ("bill", "skip"): (False, "default", None),
        ("check", "reports"): ("reports", "default", None),
        ("volumes", "my-agent"): (400, "file", "../pyproject.toml:14"),
        (None, "CACHECOST_TOKENS"): ("tiktoken", "environment", "CACHECOST_TOKENS"),
        (None, "CACHECOST_MAX_LINE"): ("64M", "default", None),
    }
    assert {
        name: (row["value"], row["origin"], row["place"]) for name, row in rows.items() if name in origins
    } == origins
    assert "live.json" in printed("--all")


def test_without_a_file_it_says_where_it_looked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pyproject.toml").unlink()
    assert printed().splitlines() == [
        "No settings file: there is neither cachecost.toml nor [tool.cachecost] in pyproject.toml in ., ..",
        "setting           value     from",
        "CACHECOST_TOKENS  tiktoken  environment",
    ]
    monkeypatch.delenv("CACHECOST_TOKENS")
    assert len(printed().splitlines()) == 1
    monkeypatch.setenv("CACHECOST_CONFIG", "off")
    assert printed().splitlines()[0] == "No settings file: CACHECOST_CONFIG is off."


def test_it_reports_the_errors_of_all_commands_at_once(folder: Path) -> None:
    (folder / "cachecost.toml").write_text('[bill]\nby = "x"\n[serve]\nport = -1\n[volumes]\na = 0\n')
    (folder / "pyproject.toml").unlink()
    done = run_here("config")
    assert (done.returncode, done.stdout) == (2, "")
    assert [line.split(":")[1].split()[0] for line in done.stderr.splitlines()[:3]] == ["2", "4", "6"]
    assert done.stderr.endswith("3 errors; nothing was run.\n")


def test_text_of_a_file_cannot_control_the_terminal(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.cachecost.volumes]\n"\\u001b[31m" = 4\n[tool.cachecost.bill]\n')
    assert "\x1b" not in printed()
    (folder / "pyproject.toml").write_text('[tool.cachecost]\n"\\u001b[31m" = 4\n')
    assert "\x1b" not in run_here("config").stderr
