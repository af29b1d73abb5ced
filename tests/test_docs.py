"""The documentation holds: links, command lines, what is shown as printed, figures, pages that are made from code."""

from __future__ import annotations

import functools
import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from cachecost.commands.catalogue import COMMAND_GROUPS
from docs_pages import DOCS, ROOT, anchors, blocks, command_lines, every, faults_of, links, name, run, shown
from tools.reference import pages
from tools.reference.commands import documented

FIGURE = re.compile(r"\$[\d,]+(?:\.\d+)?|\d[\d,.]* of \d[\d,]*|\d+(?:\.\d+)? %|seen \d+ times|contradicted by \d+")
REPORT = re.compile(r"\]\(((?:\.\./)*reports/[^)#]+\.md|[^)]*reference/[^)#]+\.md)")


@functools.cache
def made() -> dict[str, str]:
    return pages()


def test_every_command_and_every_option_is_documented() -> None:
    sections = dict(re.findall(r"^#+ cachecost (.+?)\n(.*?)(?=^#+ |\Z)", made()["commands.md"], flags=re.M | re.S))
    shared = made()["commands.md"].split("## Rules and prices")[1].split("\n## cachecost ")[0]
    problems = [
        (command, option)
        for command, option in documented()
        if not re.search(rf"`[^`]*{re.escape(option)}\b", sections[command] + shared)
    ]
    assert problems == []


@pytest.mark.parametrize("page", every(), ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = [link for link in links(page) if not _leads(page, link)]
    assert broken == []


def _leads(page: Path, link: str) -> bool:
    if "://" in link:
        return link.startswith("https://")
    target, _, anchor = link.partition("#")
    there = (page.parent / target).resolve() if target else page
    return there.exists() and (not anchor or anchor in anchors(there))


@pytest.mark.parametrize("part", ["tutorials", "how-to", "reference", "explanation"])
def test_the_index_of_a_part_names_each_of_its_pages(part: str) -> None:
    index = DOCS / part / "index.md"
    pages = {page.name for page in (DOCS / part).glob("*.md")} - {"index.md"}
    assert pages - set(links(index)) == set()


def test_readme_groups_the_commands_as_help_does() -> None:
    text = (ROOT / "README.md").read_text().split("## Commands\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([A-Z][^|]+) \| ([^|]+) \|$", text, flags=re.M)
    assert {heading: re.findall(r"`(\w+)`", names) for heading, names in rows} == {
        heading: list(group) for heading, group in COMMAND_GROUPS.items()
    }


def test_readme_is_one_page() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


@pytest.mark.parametrize("page", shown(), ids=name)
def test_every_command_line_is_one_that_the_command_takes(page: Path) -> None:
    checked = ((at, line, faults_of(line, whole)) for at, line, whole in command_lines(page))
    assert [f"line {at}: {line}: {fault}" for at, line, fault in checked if fault] == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("cachecost replay x.jsonl --strategies none", "No such option"),
        ("cachecost replay x.jsonl --tokens guess", "count_tokens; got 'guess'"),
        ("cachecost serve --port 70000", "70000 is not in the range"),
        ("cachecost live x.yaml", "missing --max-usd"),
        ("cachecost replai x.jsonl", "no such command 'replai' (did you mean 'replay'?)"),
    ],
)
def test_a_wrong_command_line_is_seen(line: str, fault: str) -> None:
    assert fault.replace("'", "") in (faults_of(line, True) or "").replace("'", "")


FIGURED = [page for page in shown() if page.name not in ("clients.md", "seeds.md")]
"""Those two have measurements of their own, and tests of these."""


@pytest.mark.parametrize("page", FIGURED, ids=name)
def test_a_figure_stands_in_what_its_paragraph_links_to_or_in_what_is_printed(page: Path) -> None:
    text = page.read_text()
    printed = " ".join(block.text for block in blocks(page, "console", "text", "yaml")) + CALIBRATED
    strays = [
        (figure, paragraph[:60])
        for paragraph in _paragraphs(text)
        for figure in FIGURE.findall(paragraph.replace("\\", ""))
        if figure not in printed and figure not in _linked(page, paragraph) and figure not in CHOSEN
    ]
    assert strays == []


CHOSEN = {"5%", "2%", "95 of 100", "$0.45"}
"""The limit that examples set, and the margin of `live` (its own test below); the tutorial's distance; the band; the
moment that README's picture shows (tests/live/test_viewer_browser_keys.py)."""


def _paragraphs(text: str) -> list[str]:
    """Paragraphs and rows of tables, without fenced blocks."""
    bare = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    return [row for part in bare.split("\n\n") for row in (part.splitlines() if part.startswith("|") else [part])]


def _linked(page: Path, paragraph: str) -> str:
    found = [(page.parent / link[1]).resolve() for link in REPORT.finditer(paragraph)]
    return " ".join(path.read_text().replace("\\", "") for path in found)


def _calibrated() -> str:
    data = tomllib.loads((ROOT / "simulator/cachecost/tokens/calibration.toml").read_text())
    parts = [each[part] for each in data["generations"].values() for part in ("error", "held_out")]
    errors = [part[counter] for part in parts for counter in ("tiktoken", "ctok")]
    shares = [f"{100 * share:.1f}%" for error in errors for share in (error["median"], error["p95"])]
    file = (ROOT / "simulator/cachecost/tokens/margins.toml").read_text()
    rows = [row for counters in tomllib.loads(file)["margins"].values() for row in counters.values()]
    makers = (ROOT / "simulator/cachecost/tokens/maker_margins.toml").read_text()
    images = tomllib.loads((ROOT / "simulator/cachecost/tokens/images.toml").read_text())
    margins = [images["pdf"]["error_margin"], images["unknown_image"]["error_margin"]]
    margins += [share for row in rows for share in row.values() if isinstance(share, float)]
    scripts = tomllib.loads((ROOT / "simulator/cachecost/tokens/scripts.toml").read_text())["margin"]
    margins += [share for row in scripts.values() for share in row.values()]
    return " ".join([*shares, *(f"{100 * share:{'.2g' if share < 1 else '.0f'}}%" for share in margins), file, makers])


CALIBRATED = _calibrated()


def test_the_numbers_of_the_fit_and_of_the_budget_are_those_of_the_code() -> None:
    from cachecost.live.driver.budget import COUNT_SHARE, COUNT_TOKENS

    data = tomllib.loads((ROOT / "simulator/cachecost/tokens/calibration.toml").read_text())
    assert f"on {data['fit']['requests']} requests" in (DOCS / "explanation/how-sure.md").read_text()
    assert f"plus {COUNT_SHARE:.0%} and {COUNT_TOKENS} tokens" in (DOCS / "how-to/live.md").read_text()


def test_pages_name_as_many_formats_as_there_are() -> None:
    """The table has each in its first column; a recording is one format, of calls or of a conversation."""
    from cachecost.conversations.readers.detect import READERS

    first = re.findall(r"^\|([^|]*)\|", (DOCS / "reference/formats.md").read_text("utf-8"), re.M)
    assert {name for cell in first for name in re.findall(r"`([^`]+)`", cell)} >= READERS.keys()
    endings = ("", "-one", "-two", "-three", "-four", "-five", "-six", "-seven", "-eight", "-nine")
    number = f"[twenty{endings[len(READERS) - 1 - 20]} formats]"
    for page in (ROOT / "README.md", DOCS / "tutorials/first-ten-minutes.md"):
        assert number in page.read_text("utf-8"), page


def test_the_site_is_built_without_a_warning_and_asks_nobody_else(tmp_path: Path) -> None:
    if shutil.which("mkdocs") is None:
        pytest.skip("mkdocs is not installed (extra: docs)")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = run(words, NO_MKDOCS_2_WARNING="1")
    assert done.returncode == 0, done.stderr
    asked = re.compile(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"?(https?:)?//(?!127\.0\.0\.1)")
    assert [page.name for page in tmp_path.rglob("*.html") if asked.search(page.read_text())] == []
