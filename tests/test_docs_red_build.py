"""docs/tutorials/red-build.md, followed in an empty folder: what it shows is what is printed."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest

from cachecost.cli import exit_code
from cachecost.commands.check import check
from cachecost.commands.init import init
from docs_pages import DOCS, blocks, same, trimmed
from planted_agents.edits import Edit

PAGE = DOCS / "tutorials" / "red-build.md"
SHOWN = re.compile(r"<!-- run: ([^>]+) -->\n```text\n(.*?)```", re.S)
ENVIRONMENT = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}
VARYING = (
    (re.compile(r"\d\d:\d\d:\d\d\.\d{6}"), "10:51:12.345678"),
    (re.compile(r"then “It is 10:51:12.345678"), "then “It is 10:51:14.901234"),
    (re.compile(r"You\b[ \w]*…”"), "You ans…”"),  # how much of the sentence is shown depends on where the times differ
    (re.compile(r"\(It is [^,]*, character \d+\)"), "(It is 10:51:12.▮345678. You, character 15)"),
    (re.compile(r"system\.0\.text, character \d+"), "system.0.text, character 12"),
    (re.compile(r"written again: \$0\.0045\d"), "written again: $0.00459"),  # how far the digits differ
    (re.compile(r"baseline of \d{4}-\d\d-\d\d"), "baseline of 2026-11-24"),
)
"""What is different each time, and what the page has in its place."""


def run(command: str) -> tuple[int, str]:
    """Exit code and stdout of a command of the page, without what is different each time."""
    name, *words = command.partition(",")[0].split()
    out = io.StringIO()
    with patch.dict(os.environ, ENVIRONMENT), redirect_stdout(out), redirect_stderr(io.StringIO()):
        code = exit_code(lambda: {"init": init, "check": check}[name].main(words, standalone_mode=False))
    text = out.getvalue()
    for pattern, fixed in VARYING:
        text = pattern.sub(fixed, text)
    return code, trimmed(text)


def diff_of_page() -> Edit:
    """The change that the page plants, as one edit."""
    (block,) = blocks(PAGE, "diff")
    lines = [line for line in block.text.splitlines() if not line.startswith("@@")]
    imports, changed = ([one for one in part if one] for part in _halves(lines))
    assert imports == [" import sys", "+from datetime import datetime", " ", " import anthropic"]
    old = "\n".join(line[1:] for line in changed if line[0] in " -")
    new = "\n".join(line[1:] for line in changed if line[0] in " +")
    return Edit("agent.py", old, new)


def _halves(lines: list[str]) -> tuple[list[str], list[str]]:
    at = lines.index(" import anthropic") + 1
    return lines[:at], lines[at:]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[int, str]]]:
    """What each command of the page prints, one after the other in one folder."""
    pytest.importorskip("anthropic", reason="the page's agent uses it; it is in the extra live")
    folder = tmp_path_factory.mktemp("town")
    (agent,) = blocks(PAGE, "python")
    (folder / "agent.py").write_text(agent.text)
    found = {}
    with chdir(folder):
        found["init"] = run("init")
        found["check --update"] = run("check --update")
        Edit("agent.py", "import sys\n", "import sys\nfrom datetime import datetime\n").apply(folder)
        diff_of_page().apply(folder)
        found["check, red"] = run("check")
    found["check"] = found["check --update"]  # the agent is as it was, and so are all limits
    yield found


@pytest.mark.slow
def test_the_exit_codes_are_those_of_the_page(printed: dict[str, tuple[int, str]]) -> None:
    assert [code for code, _ in printed.values()] == [0, 0, 1, 0]


@pytest.mark.slow
def test_the_page_shows_what_is_printed(printed: dict[str, tuple[int, str]], request: pytest.FixtureRequest) -> None:
    page = PAGE.read_text()
    if request.config.getoption("--update-goldens"):
        page = SHOWN.sub(lambda found: f"<!-- run: {found[1]} -->\n```text\n{printed[found[1]][1]}\n```", page)
        PAGE.write_text(page)
    shown = dict(SHOWN.findall(page))
    assert set(shown) == set(printed)
    for command, text in shown.items():
        assert same(text, printed[command][1]), printed[command][1]


def test_the_agent_is_as_short_as_the_page_says() -> None:
    (agent,) = blocks(PAGE, "python")
    assert len(agent.text.splitlines()) <= 31
