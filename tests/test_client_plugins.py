"""The plugin and the snippets for clients parse, have the fields that are documented, and name commands that exist.

Fields: code.claude.com/docs/en/plugins/manifest-reference and marketplace-reference, hooks, settings, skills;
developers.openai.com/codex/plugins/build and config; opencode.ai/config.json (2026-11).
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.version import __version__
from cachecost.base.yaml_text import parse
from cachecost.cli import COMMANDS
from cachecost.commands.hook_run import EVENTS

ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "plugin"
SKILL = PLUGIN / "skills/reduce-prompt-cache-cost/SKILL.md"
GUIDE = ROOT / "docs/how-to/while-you-work.md"
MARKETPLACES = (ROOT / ".claude-plugin/marketplace.json", ROOT / ".agents/plugins/marketplace.json")
MANIFESTS = (PLUGIN / ".claude-plugin/plugin.json", PLUGIN / ".codex-plugin/plugin.json")
ABOUT = {"name", "version", "description", "author", "homepage", "repository", "license", "keywords"}
PARTS = {"skills", "hooks", "mcpServers"}


def read(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    value: dict[str, Any] = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    return value


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command that a client would run, and where it stands."""
    for groups in read(PLUGIN / "hooks/claude-code.json")["hooks"].values():
        yield from (("hooks", shlex.split(hook["command"])) for group in groups for hook in group["hooks"])
    yield "settings", shlex.split(read(PLUGIN / "claude-settings.json")["statusLine"]["command"])
    yield "opencode", read(PLUGIN / "opencode.json")["mcp"]["cachecost"]["command"]
    for path, key in ((PLUGIN / ".mcp.json", "mcpServers"), (PLUGIN / "codex.toml", "mcp_servers")):
        server = read(path)[key]["cachecost"]
        assert set(server) == {"command", "args"}
        yield path.name, [server["command"], *server["args"]]


def test_each_client_runs_a_command_that_exists() -> None:
    found = list(commands())
    assert {tuple(words) for _, words in found} == {
        ("cachecost", name) for name in ("hook", "statusline", "mcp") if name in COMMANDS
    }
    assert len(found) == 7


@pytest.mark.parametrize("path", MARKETPLACES, ids=str)
def test_a_marketplace_lists_the_plugin(path: Path) -> None:
    market = read(path)
    is_claude = path.parent.name == ".claude-plugin"
    assert set(market) == {"name", "plugins"} | ({"owner", "description"} if is_claude else {"interface"})
    (entry,) = market["plugins"]
    source = entry["source"] if is_claude else entry["source"]["path"]
    assert source.startswith("./") and (ROOT / source).resolve() == PLUGIN
    assert entry["name"] == read(MANIFESTS[0])["name"] == market["name"]
    if not is_claude:
        assert entry["policy"] == {"installation": "AVAILABLE", "authentication": "ON_INSTALL"}
        assert entry["source"]["source"] == "local" and entry["category"]


@pytest.mark.parametrize("path", MANIFESTS, ids=str)
def test_a_manifest_has_documented_fields_and_names_files_that_are_there(path: Path) -> None:
    manifest = read(path)
    assert set(manifest) <= ABOUT | PARTS | ({"interface"} if path.parent.name == ".codex-plugin" else set())
    assert re.fullmatch(r"[a-z][a-z0-9-]*", manifest["name"]) and manifest["version"] == __version__
    for part in PARTS & set(manifest):
        assert manifest[part].startswith("./") and (PLUGIN / manifest[part]).exists()


def test_the_hooks_are_events_that_the_command_answers() -> None:
    """Claude Code 2.1.197 drops all hooks of a plugin for one event it does not know, so the newest is not here."""
    hooks = read(PLUGIN / "hooks/claude-code.json")
    assert set(hooks) == {"hooks"}
    assert set(hooks["hooks"]) == set(EVENTS) - {"PreModelSwitch"}
    for groups in hooks["hooks"].values():
        for group in groups:
            assert set(group) <= {"matcher", "hooks"}
            assert all(set(hook) == {"type", "command", "timeout"} for hook in group["hooks"])


def test_the_snippets_have_documented_fields() -> None:
    settings, opencode = read(PLUGIN / "claude-settings.json"), read(PLUGIN / "opencode.json")
    assert set(settings) == {"statusLine"} and settings["statusLine"]["type"] == "command"
    assert set(opencode) == {"$schema", "mcp"}
    server = opencode["mcp"]["cachecost"]
    assert (set(server), server["type"], server["enabled"]) == ({"type", "command", "enabled"}, "local", True)


def test_the_skill_names_commands_and_tools_that_exist() -> None:
    pytest.importorskip("mcp")
    from cachecost.commands.mcp_server.server import TOOLS

    _, head, body = SKILL.read_text(encoding="utf-8").split("---\n", 2)
    about = parse(head, "").value
    assert set(about) == {"name", "description"}
    assert about["name"] == SKILL.parent.name and len(about["description"]) <= 1024
    assert set(re.findall(r"`cachecost ([a-z]+)", body)) <= set(COMMANDS)
    tools = set(re.findall(r"\[`([a-z_]+)`\]", body))
    assert tools == {tool.__name__ for tool in TOOLS}


def test_the_guide_shows_the_snippets_as_they_are() -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    for path in (PLUGIN / "opencode.json", PLUGIN / "codex.toml"):
        assert path.read_text(encoding="utf-8").strip() in guide, path
