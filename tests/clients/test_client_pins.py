"""What the clients are pinned to: everything exactly, the same in `docs/how-to/clients.md`, and no registry by name."""

import json
import re
from pathlib import Path

import pytest
from clients_bench import REQUIRED_IN_CI, ROOT

PINS = Path(__file__).parent / "requirements"
PYTHON = sorted(PINS.glob("*.txt"))
NODE = sorted(PINS.glob("*/package-lock.json"))
LINE = re.compile(r"[a-z0-9._-]+==\d[\w.]*( ; .*)?")
MAIN = {
    "anthropic": "anthropic",
    "langchain": "langchain-anthropic",
    "pydantic-ai": "pydantic-ai-slim",
    "litellm": "litellm",
    "llm": "llm-anthropic",
    "claude-agent-sdk": "claude-agent-sdk",
    "openai": "openai",
    "google-genai": "google-genai",
}


def names() -> set[str]:
    return {path.stem for path in PYTHON} | {path.parent.name for path in NODE}


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: path.stem)
def test_python_packages_are_pinned_exactly(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert lines
    assert [line for line in lines if not LINE.fullmatch(line)] == []


@pytest.mark.parametrize("path", NODE, ids=lambda path: path.parent.name)
def test_node_packages_are_pinned_exactly(path: Path) -> None:
    lock = json.loads(path.read_text())
    asked = json.loads((path.parent / "package.json").read_text())["dependencies"]
    packages = {name: one for name, one in lock["packages"].items() if name}
    assert lock["packages"][""]["dependencies"] == asked
    assert all(re.fullmatch(r"\d[\w.+-]*", version) for version in asked.values())
    assert all("version" in one and "integrity" in one for one in packages.values())
    assert not [name for name, one in packages.items() if "resolved" in one]


def test_the_clients_of_ci_are_pinned() -> None:
    assert set(REQUIRED_IN_CI) <= names()


def version_of(client: str) -> str:
    if client in MAIN:
        return re.search(rf"^{MAIN[client]}==(\S+)", (PINS / f"{client}.txt").read_text(), re.MULTILINE)[1]
    (version,) = json.loads((PINS / client / "package.json").read_text())["dependencies"].values()
    return str(version)


@pytest.mark.parametrize("client", sorted(names() - {"uv"}))
def test_the_documentation_tells_the_pinned_version(client: str) -> None:
    assert version_of(client) in (ROOT / "docs/how-to/clients.md").read_text()
