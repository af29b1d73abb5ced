"""What the documentation shows as printed is printed; its YAML loads, and its Python runs."""

from __future__ import annotations

import functools
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner

from cachecost.cli import cachecost
from cachecost.scenario import load
from docs_pages import ELISION, ROOT, Block, blocks, name, run, same, shown, trimmed
from slow_cases import mostly_slow


@pytest.fixture
def updating(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-goldens"))


LONG = "run scenarios/answer-inquiry.yaml --set host=vllm"
"""How the command begins that takes seven seconds."""
CONSOLES = [block for page in shown() for block in blocks(page, "console")]


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(
            block,
            id=f"{name(block.page)}:{block.line}",
            marks=pytest.mark.slow if block.text.startswith(f"$ cachecost {LONG}") else (),
        )
        for block in CONSOLES
    ],
)
def test_what_is_shown_as_printed_is_printed(block: Block, updating: bool) -> None:
    command, _, text = block.text.partition("\n")
    printed = _printed(command.removeprefix("$ cachecost "))
    if updating and not same(text, printed):
        whole, text = block.page.read_text(), _cut(printed, text)
        block.page.write_text(whole.replace(block.text, f"{command}\n{text}"))
    assert same(text, printed), f"{name(block.page)}:{block.line} shows something else than\n{printed}"


def _cut(printed: str, text: str) -> str:
    """What is printed, as far as `text` shows it: where `text` ends with an elision, as many lines as it has."""
    lines, old = printed.splitlines(), text.splitlines()
    return "\n".join([*lines[: len(old) - 1], ELISION] if old[-1:] == [ELISION] else lines) + "\n"


@functools.cache
def _printed(line: str) -> str:
    """What a command writes to stdout, 100 columns wide; in this process, so that all share what is loaded."""
    with chdir(ROOT):
        done = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}).invoke(cachecost, line.split())
    assert done.exit_code in (0, 1) and isinstance(done.exception, (SystemExit, type(None))), done.exception
    return trimmed(done.stdout)


@pytest.mark.parametrize(
    ("shown", "printed", "equal"),
    [
        ("a\nb", "a\nb\n", True),
        ("a\nc", "a\nb", False),
        ("a\n…\nc", "a\nb\nb\nc", True),
        ("a\n…", "a\nb", True),
        ("a\n…\nc", "a\nb", False),
        ("a", "a\nb", False),
        ("", "a", False),
    ],
)
def test_an_elision_stands_for_lines(shown: str, printed: str, equal: bool) -> None:
    assert same(shown, printed) is equal


YAMLS = [block for page in shown() for block in blocks(page, "yaml")]


@pytest.mark.parametrize("block", YAMLS, ids=lambda block: f"{name(block.page)}:{block.line}")
def test_yaml_is_a_scenario_or_a_part_of_one(block: Block, tmp_path: Path) -> None:
    base = "format: 1\nname: x\nmodel: claude-sonnet-5\nconversation: {synthetic: {seed: 1}}\n"
    others = "" if "strategies:" in block.text else "strategies: [progressive]\n"
    text = block.text if block.text.startswith("format: 1") else base + others + block.text
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "scenario.yaml").write_text(text)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    load(tmp_path / "x" / "scenario.yaml")


PYTHONS = [pytest.param(page, id=name(page)) for page in shown() if blocks(page, "python")]


@pytest.mark.parametrize("page", mostly_slow(PYTHONS, 1))
def test_python_on_a_page_runs(page: Path, tmp_path: Path) -> None:
    code = "\n".join(block.text for block in blocks(page, "python"))
    done = _tested(code, tmp_path) if "def test_" in code else run([sys.executable, "-W", "error", "-c", code])
    assert done.returncode == 0, done.stdout + done.stderr


def _tested(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Tests that a page shows, run with the plugin."""
    (folder / "test_page.py").write_text(code)
    words = [sys.executable, "-m", "pytest", "-p", "cachecost.pytest_plugin", "--rootdir", str(folder), str(folder)]
    return run(words, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
