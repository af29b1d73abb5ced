"""Hostile strings × outputs: what somebody else wrote is seen everywhere and acts nowhere."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from cachecost.base.formatting import IN_TEXT, inert, inert_cell, inert_output, inert_text
from cachecost.views.check.badge import badge_svg
from cachecost.views.check.github import annotation_lines
from cachecost.views.check.gitlab import render as gitlab
from cachecost.views.check.junit import render as junit
from cachecost.views.check.markdown import render as markdown
from cachecost.views.check.sarif import render as sarif
from cachecost.views.check.text import text_lines
from cachecost.views.tables.output import code_block, csv_text, markdown_table
from cachecost.views.tables.table import build_table
from command_runs import run_here
from conversations.session_stores import write_lines
from hostile.attempts import attempt
from hostile.seeds import SCENARIO, request_body
from slow_cases import mostly_slow

HOSTILE = {
    "colour": "\x1b[31mred\x1b[0m",
    "title": "\x1b]0;owned\x07",
    "link": "\x1b]8;;http://x\x1b\\here\x1b]8;;\x1b\\",
    "clear": "\x1b[2J\x1b[H",
    "C1": "\x9b31mred",
    "return": "good\rbad",
    "right to left": "\u202egnp.exe",
    "isolate": "a\u2066b\u2069",
    "unseen": "a\u200bb\ufeff",
    "separator": "a\u2028b",
    "lone surrogate": "a\ud800b",
    "command": "x\n::error::injected",
    "group": "x\n##[error]injected",
    "formula": '=HYPERLINK("http://x")',
    "plus": "+1+cmd|' /C calc'!A0",
    "minus": "-2+3",
    "at": "@SUM(A1)",
    "tab": "\t=1",
    "script": "<script>alert(1)</script>",
    "attribute": '"><img src=x onerror=alert(1)>',
    "row": "a | b |\n| c",
    "markup": "[/bold] [link=http://x]y[/link]",
    "image": "![x](http://x) `code` <!-- x",
    "entity": "]]>&x;",
}
each_string = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
some_strings = pytest.mark.parametrize(
    "text", mostly_slow((pytest.param(HOSTILE[name], id=name) for name in HOSTILE), 6)
)
"""Under commands, which take longer."""


def acts(output: str) -> bool:
    """Whether something in the output of a command would do more than be read."""
    begins = [line.lstrip() for line in output.splitlines()]
    return IN_TEXT.search(output) is not None or any(line.startswith(("::", "##[")) for line in begins)


# ---------------------------------------------------------------------------------------- the function


@each_string
def test_a_line_is_printable_and_once_is_enough(text: str) -> None:
    shown = inert(text)
    assert "\n" not in shown and not IN_TEXT.search(shown) and shown.isprintable()
    assert inert(shown) == shown and inert_text(shown) == shown
    assert not acts(inert_output(text)) and inert_output(inert_output(text)) == inert_output(text)


@each_string
def test_json_means_the_same_after(text: str) -> None:
    written = json.dumps({text: text}, ensure_ascii=False, indent=1)
    assert json.loads(inert_output(written)) == {text: text}


@pytest.mark.parametrize("text", ["plain", "日本語 – “é” 👩‍👩‍👧 ✗", "a  b", "-0.25", "+3%", "1,000.5", ""])
def test_what_does_nothing_stays_as_it_is(text: str) -> None:
    assert inert(text) == inert_text(text) == inert_output(text) == inert_cell(text) == text


# --------------------------------------------------------------------------------------------- the views


@each_string
def test_csv_has_no_formula(text: str) -> None:
    ((name,), (cell,)) = csv.reader(StringIO(csv_text([{text: text}])))
    for one in (name, cell):
        assert not one.lstrip().startswith(tuple("=+-@|%")) and inert_text(one) == one


@each_string
def test_markdown_has_no_markup_and_no_other_cells(text: str) -> None:
    shown = markdown_table(build_table("", ["a", "b"], [[text, "1"]]))
    assert not IN_TEXT.search(shown) and len(shown.splitlines()) == 3
    row = shown.splitlines()[-1]
    assert row.replace("\\|", "").count("|") == 3
    assert "<" not in row.replace("\\<", "") and "[" not in row.replace("\\[", "") and "`" not in row.replace("\\`", "")


def check_of(text: str) -> dict[str, Any]:
    """The JSON of a check in which `text` stands wherever a user's or a log's words may."""
    change = {"what": text, "effect": text, "call": 1, "last": 1, "calls": 1, "cost_usd": "1", "code": None}
    change |= {"file": f"{text}.yaml", "line": 3, "column": 1}
    budget = {"scenario": text, "strategy": text, "budget": "max_cost_usd", "verdict": "fail", "message": text}
    where = {"file": f"{text}.yaml", "line": 3, "column": 1, "changes": [change]}
    costs = {"scenario": text, "strategy": text, "baseline_usd": "1", "cost_usd": "2", "errors": 0}
    rates = {
        "hit_rate": "0.5",
        "baseline_hit_rate": "0.9",
        "input_tokens": 2,
        "cache_read_input_tokens": 1,
        "output_tokens": 1,
    }
    spans = dict.fromkeys(f"{name}usd_per_{span}" for name in ("", "baseline_") for span in ("day", "month"))
    sent = {"layer": "tools", "path": f"tools.0.{text}", "name": text, "kind": "changed", "call": 1, "calls": 2}
    shown = {"before": text, "after": text, "character": 3, "tokens_before": 1, "tokens_after": 2, "rewritten": [2]}
    more = {"refused": 0, "more": 0, "varies": False, "cost_usd": "1", "file": f"{text}.py", "line": 3, "column": 1}
    other = {**sent, **shown, **more, "kind": "parameter_changed"}
    rest = {"cost_usd": "1", "answers_usd": "0"}
    comparison = {"scenario": text, "strategy": text, "cost_usd": "2", "rest": rest}
    return {
        "format": 1,
        "verdict": "fail",
        "budgets": [{**budget, **where}],
        "strategies": [costs],
        "accept": [f"cachecost check '{text}' --update"],
        "projection": None,
        "sessions": [{**costs, **rates, **spans, "volume": None}],
        "prompt_changes": [{**comparison, "changes": [{**sent, **shown, **more}, other]}],
    }


@each_string
def test_a_check_is_inert_in_every_rendering(text: str) -> None:
    check = check_of(text)
    assert not any("\n" in line or IN_TEXT.search(line) for line in text_lines(check))
    annotations = annotation_lines(check)
    assert len(annotations) == 3 and all(line.startswith("::error file=") for line in annotations)
    assert not any("\n" in line or IN_TEXT.search(line) for line in annotations)
    root = ET.fromstring(junit(check))
    assert not any(IN_TEXT.search(str(one.text)) for one in root.iter()) and len(list(root.iter("testcase"))) == 1
    assert not IN_TEXT.search(str([one.attrib for one in root.iter()]))
    found = [one["message"]["text"] for one in json.loads(sarif(check))["runs"][0]["results"]]
    assert len(found) == 3 and list(map(inert, found)) == found
    comment = markdown(check)
    assert not IN_TEXT.search(comment) and "<script" not in outside_of_fences(comment).replace("\\<", "")
    assert not IN_TEXT.search(gitlab(check)) and not IN_TEXT.search(badge_svg(check, "both"))


def outside_of_fences(comment: str) -> str:
    """A comment without its code blocks; a block ends with the same fence."""
    kept, fence = [], ""
    for line in comment.splitlines():
        ticks = line.strip()[: len(line.strip()) - len(line.strip().lstrip("`"))]
        if fence:
            fence = "" if line.strip() == fence else fence
        elif len(ticks) >= 3:
            fence = ticks
        else:
            kept.append(line)
    return "\n".join(kept)


def test_code_blocks_cannot_be_ended_from_within() -> None:
    block = code_block(["- ```", "+ ````` <script>"], "diff")
    assert block == "``````diff\n- ```\n+ ````` <script>\n``````"
    assert outside_of_fences(f"a\n{block}\nb") == "a\nb"


# ------------------------------------------------------------------------------------------ the commands


def log_with(text: str, folder: Path) -> Path:
    """A log with `text` for the model, the session, the workspace and a tool."""
    tool = {"name": text, "description": text, "input_schema": {"type": "object", text: text}}
    first, second = request_body(), {**request_body(), "tools": [tool]}
    words = {"session": text, "workspace": text, "source": text}
    rows = [{"request": body, **words} for body in (first, second, {**first, "model": text or "x"})]
    path = folder / "log.jsonl"
    return write_lines(path, rows)


COMMANDS = ("replay LOG --tokens bytes", "lint LOG --tokens bytes", "explain LOG --tokens bytes", "validate LOG")


@some_strings
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("colour", [False, True])
def test_logs_are_inert_in_a_terminal(
    command: str, text: str, colour: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if colour:
        monkeypatch.setenv("FORCE_COLOR", "1")
    ended = attempt(command, log_with(text, tmp_path), tmp_path / "out", tmp_path)
    assert ended.code in (0, 1, 2, 3) if text == HOSTILE["lone surrogate"] else (0, 1, 3), ended.err
    plain = ended.out
    for sign in range(110):
        plain = plain.replace(f"\x1b[{sign}m", "").replace(f"\x1b[1;{sign}m", "")
    assert text not in ended.out + ended.err if acts(text) else True
    assert not acts(plain) and not acts(ended.err)


@some_strings
def test_logs_are_inert_on_a_page_and_in_a_sheet(text: str, tmp_path: Path) -> None:
    log = log_with(text, tmp_path)
    ended = attempt("replay LOG --html OUT/page.html --csv OUT/rows.csv --tokens bytes", log, tmp_path, tmp_path)
    if ended.code == 2:
        pytest.skip("the log is refused")
    page = (tmp_path / "page.html").read_text()
    assert not IN_TEXT.search(page) and "<script>alert" not in page and "<img src=x" not in page
    with (tmp_path / "rows.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert all(inert_cell(cell) == cell for cell in cells)


@some_strings
def test_scenarios_are_inert(text: str, tmp_path: Path) -> None:
    words = json.dumps(text, ensure_ascii=text == HOSTILE["lone surrogate"])
    scenario = tmp_path / "s.yaml"
    content = SCENARIO.replace("What does it cost?", words).replace("source: a page", f"source: {words}")
    scenario.write_text(content.replace('"$0.59"', words))
    ended = attempt("run LOG --out OUT", scenario, tmp_path / "report", tmp_path)
    assert ended.code in (0, 2) and not acts(ended.out + ended.err), ended.err
    for path in (tmp_path / "report").glob("*.*"):
        if path.suffix in (".md", ".html", ".csv"):
            assert not IN_TEXT.search(path.read_text()), path
            assert "<script>alert" not in path.read_text().replace("\\<", "")


@each_string
def test_a_name_that_acts_is_refused(text: str, tmp_path: Path) -> None:
    scenario, words = tmp_path / "s.yaml", json.dumps(text)
    scenario.write_text(SCENARIO.replace("name: own", f"name: {words}").replace("strategy: own", f"strategy: {words}"))
    ended = attempt("check LOG --reports OUT --github", scenario, tmp_path / "reports", tmp_path)
    assert not IN_TEXT.search(ended.out + ended.err)
    assert ended.code == (3 if inert(text) == text else 2), ended.err
    assert not any("injected" in line for line in ended.out.splitlines() if line.startswith("::"))


def scenario_or_log(command: str, folder: Path) -> list[Path | str]:
    """The words of a command that prints signs which few encodings have."""
    scenario = folder / "s.yaml"
    scenario.write_text(SCENARIO)
    return [command, scenario, "--no-report"] if command == "run" else [command, log_with("日本 → ✗", folder)]


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp1252"])
@pytest.mark.parametrize("command", ["run", "whatif", "explain", "replay", "lint"])
def test_a_stream_that_lacks_a_sign_gets_another(command: str, encoding: str, tmp_path: Path) -> None:
    done = run_here(*scenario_or_log(command, tmp_path), PYTHONIOENCODING=encoding)
    assert done.returncode in (0, 1, 3), done.stderr
    assert done.stdout and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("command", "encoding"), mostly_slow([("run", "cp1252"), ("replay", "latin-1"), ("lint", "ascii")], 1)
)
def test_a_process_whose_stream_lacks_a_sign_writes_another(command: str, encoding: str, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "cachecost", *map(str, scenario_or_log(command, tmp_path))]
    done = subprocess.run(words, capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": encoding})
    assert done.returncode in (0, 1, 3), done.stderr
    assert done.stdout.decode(encoding) and b"Traceback" not in done.stderr
