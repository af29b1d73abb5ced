"""What texts refer to exists: rules of docs/rulebook.md, links, pages named in code, documented JSON fields."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from contextlib import chdir
from functools import cache
from pathlib import Path
from typing import get_args

import click
import pytest
from click.testing import CliRunner

from cachecost.account.causes import Cause
from cachecost.cli import COMMANDS, cachecost
from docs_pages import DOCS, ROOT, anchors, every, links

RULEBOOK, FORMATS = DOCS / "rulebook.md", DOCS / "reference/output-formats.md"
TOP = (ROOT / "README.md", ROOT / "CONTRIBUTING.md")
CODE = ("simulator", "tools", "tests", "benchmarks", "notebooks")
MENTION = re.compile(r"\brules?\s+(\d{1,2}(?:\s*(?:,|-|–|and|or|to|rule)\s*\d{1,2})*)(?!\d|\.\d|-\d{2})", re.I)
""" "rule 9", "rules 7-15", "rules 6, 8", "rules 11 and 12"; not the date in "rules 2026-11-20"."""
LINKED = re.compile(
    r"\[rules? (\d+)\]\((?:[^)#]*rulebook\.md)?#rule-(\d+)\)|\[(\d+)\]\([^)#]*rulebook\.md#rule-(\d+)\)", re.I
)
PAGE = re.compile(r"\bdocs/[\w/-]+\.md\b")
LEFT_OVER = {"docs/codes/CC999.md"}
"""A page that a test makes to see it go."""
SOMEBODY_ELSES = {"docs/ARCHITECTURE.md", "docs/prompt-caching.md", "docs/docs/diving-deeper/react.md"}
"""Pages of other repositories, named as sources of presets and changes."""
HINT = re.compile(r"\brules?[\s\"']+\d|docs/|\bcontract", re.I)
"""What the raw text of a file has that refers to something."""
ABSENT = re.compile(r"\bthe contract\b|\bcontract's\b|\(contract\b", re.I)
"""Words for a page that this repository does not have."""


def _rules() -> set[int]:
    return {int(number) for number in re.findall(r"^### Rule (\d+)$", RULEBOOK.read_text(), flags=re.M)}


def _mentioned(text: str) -> set[int]:
    """The numbers of all rules that a text refers to; of a range both ends."""
    return {int(number) for found in MENTION.finditer(text) for number in re.findall(r"\d+", found[1])}


def _sources() -> list[Path]:
    found = (path for folder in CODE for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".toml"))
    return sorted(path for path in found if path != Path(__file__))


def _comments(path: Path) -> Iterator[str]:
    """Docstrings, comments and other texts of a Python file; a TOML file is its text."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        yield text
        return
    yield from re.findall("#.*", text)  # comments, and ends of texts that have this sign
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def _texts() -> dict[Path, str]:
    """What may refer to something: only that is parsed, and when a test asks, not by everybody who collects tests."""
    return {path: "\n".join(_comments(path)) for path in _sources() if HINT.search(path.read_text(encoding="utf-8"))}


def test_the_rulebook_has_the_rules_1_to_21() -> None:
    assert _rules() == set(range(1, 22))
    assert {f"rule-{number}" for number in _rules()} <= anchors(RULEBOOK)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("(rule 9)", {9}),
        ("rules 7-15", {7, 15}),
        ("rules 6, 8 and 20", {6, 8, 20}),
        ("(rule 1, rule 19)", {1, 19}),
        ("rules 2026-11-20", set()),
        ("the rule of 3", set()),
    ],
)
def test_mentions_of_rules_are_found(text: str, numbers: set[int]) -> None:
    assert _mentioned(text) == numbers


def test_code_refers_to_rules_that_exist() -> None:
    unknown = {str(path.relative_to(ROOT)): _mentioned(text) - _rules() for path, text in _texts().items()}
    assert {path: numbers for path, numbers in unknown.items() if numbers} == {}
    assert sum(len(_mentioned(text)) for text in _texts().values()) > 50


@pytest.mark.parametrize("page", [*every(), *TOP], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_links_each_rule_that_it_names(page: Path) -> None:
    text = page.read_text()
    for found in LINKED.finditer(text):
        shown, led = (number for number in found.groups() if number)
        assert shown == led, found[0]
        assert int(led) in _rules(), found[0]
    bare = re.sub(r"`[^`\n]+`|^#+ Rule \d+$|\"Rule 9\" in a docstring", "", LINKED.sub("", text), flags=re.M)
    assert [found[0] for found in MENTION.finditer(bare)] == []


@pytest.mark.parametrize("page", TOP, ids=lambda page: page.name)
def test_every_link_of_the_top_pages_leads_somewhere(page: Path) -> None:
    assert [link for link in links(page) if "://" not in link and not _leads(page, link)] == []


def _leads(page: Path, link: str) -> bool:
    target, _, anchor = link.partition("#")
    there = (page.parent / target).resolve() if target else page
    return there.exists() and (not anchor or anchor in anchors(there))


def test_code_names_pages_that_exist() -> None:
    named = {page for text in _texts().values() for page in PAGE.findall(text)} - SOMEBODY_ELSES - LEFT_OVER
    assert {page for page in named if not (ROOT / page).exists()} == set()
    assert "docs/reference/output-formats.md" in named


def test_no_text_refers_to_a_page_that_is_not_here() -> None:
    pages = {page: page.read_text() for page in (*every(), *TOP)}
    assert [path.name for path, text in (_texts() | pages).items() if ABSENT.search(text)] == []


def test_the_causes_are_those_of_the_page() -> None:
    text = FORMATS.read_text().split("one of a closed list:")[1].split("\n\n")[0].split("In the mismatches")[0]
    assert re.findall(r"`(\w+)`", text) == list(get_args(Cause))


def test_every_command_with_json_is_on_the_page() -> None:
    rows = re.findall(r"^\| (`[^|]+)\|", FORMATS.read_text(), flags=re.M)
    stated = {command.split()[0] for row in rows for command in re.findall(r"`([^`]+)`", row)}
    assert {name for name in COMMANDS if _takes_json(name)} <= stated


def _takes_json(name: str) -> bool:
    found = cachecost.get_command(click.Context(cachecost), name)
    return found is not None and any("--json" in param.opts for param in found.params)


SESSION = "scenarios/recordings/sessions/claude-code-56-minutes.jsonl"
SCENARIO = "scenarios/progressive-caching.yaml"
SHOWN = {
    "replay": f"replay {SESSION} --json",
    "run": f"run {SCENARIO} --no-report --json",
    "explain": f"explain {SESSION} --json",
    "optimize": f"optimize {SCENARIO} --json",
    "validate": f"validate --tokens tiktoken {SESSION} --json",
    "check": f"check {SCENARIO} --json",
    "lint": "lint docs/examples/request.json --json",
    "whatif": f"whatif {SESSION} --json",
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_fields_of_the_page_are_printed(name: str) -> None:
    with chdir(ROOT):
        done = CliRunner().invoke(cachecost, SHOWN[name].split())
    text = done.stdout.partition("\n")[0] if name in ("replay", "explain") else done.stdout
    content = next(line for line in FORMATS.read_text().splitlines() if line.startswith(f"| `{name} --json` |"))
    fields = re.sub(r"\([^)]*\)", "", content.split("|")[3].split(";")[0])
    printed = json.loads(text)
    assert set(re.findall(r"`(\w+)`", fields)) <= printed.keys()
    assert printed["format"] == 1
