"""The documentation as the tests read it: pages, their fenced blocks, links, headings, and command lines."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from markdown_it import MarkdownIt

from cachecost.cli import cachecost
from tools.reference import REFERENCE_PAGES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ELISION = "…"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text, the line of the file it begins on (from 1)."""

    page: Path
    language: str
    text: str
    line: int


def shown() -> list[Path]:
    """README and the pages that people wrote: what they show as printed is printed."""
    return [ROOT / "README.md", *written()]


def written() -> list[Path]:
    """The pages that people wrote."""
    generated = {DOCS / "reference" / name for name in REFERENCE_PAGES}
    return [path for path in every() if path.parent != DOCS / "codes" and path not in generated]


def every() -> list[Path]:
    """All pages."""
    return sorted(DOCS.rglob("*.md"))


def name(page: Path) -> str:
    """A page's name in the words of a failure."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, *languages: str) -> list[Block]:
    """The fenced blocks of some languages."""
    tokens = MarkdownIt("commonmark").parse(page.read_text())
    return [
        Block(page, token.info.strip(), token.content, token.map[0] + 1)
        for token in tokens
        if token.type == "fence" and token.map and token.info.strip() in languages
    ]


def links(page: Path) -> Iterator[str]:
    """Where the links and pictures of a page lead."""
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text()):
        for child in token.children or ():
            if child.type in ("link_open", "image"):
                yield str(child.attrs.get("href") or child.attrs.get("src"))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and GitLab make them; the site is set to make the same."""
    found = re.findall(r"^#{1,6} (.+)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.S), flags=re.M)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in found}


def command_lines(page: Path) -> Iterator[tuple[int, str, bool]]:
    """Every `cachecost …` of a page with its line, and whether it is one to copy (in prose it may be incomplete)."""
    for block in blocks(page, "sh", "console", ""):
        for number, line in enumerate(block.text.splitlines(), block.line + 1):
            if (bare := line.removeprefix("$ ")).startswith("cachecost "):
                yield number, bare, True
    for number, line in enumerate(page.read_text().splitlines(), 1):
        yield from ((number, code, False) for code in re.findall(r"`(cachecost [^`]+)`", line))


def faults_of(line: str, whole: bool) -> str | None:
    """What the command line would say of its options; None: nothing. Files need not be there."""
    words = shlex.split(re.split(r" +(?:#|\||>|&&|·) ", line)[0], comments=True)[1:]
    if words and words[0].startswith("-"):
        return None
    command: click.Command = cachecost
    context = click.Context(command, info_name="cachecost")
    try:
        while isinstance(command, click.Group) and words:
            _, found, words = command.resolve_command(context, words)
            assert found is not None
            command, context = found, click.Context(found, parent=context, info_name=found.name)
        return _options_fault(command, context, words, whole)
    except click.BadOptionUsage as error:
        return error.format_message() if whole else None
    except click.ClickException as error:
        return error.format_message()


def _options_fault(command: click.Command, context: click.Context, words: list[str], whole: bool) -> str | None:
    given, _, _ = command.make_parser(context).parse_args(words)
    for option in command.params:
        value = given.get(option.name)
        if isinstance(option.type, (click.Choice, click.IntRange, click.FloatRange)) and value is not None:
            for each in value if isinstance(value, (list, tuple)) else [value]:
                option.type.convert(each, option, context)
        if whole and option.required and isinstance(option, click.Option) and value is None:
            return f"missing {option.opts[0]}"
    return None


def same(shown: str, printed: str) -> bool:
    """Whether a block shows what was printed; a line `…` stands for any lines."""
    lines = shown.strip("\n").split("\n")
    pattern = "".join("(?:.*\n)*?" if line == ELISION else re.escape(line) + "\n" for line in lines)
    return re.fullmatch(pattern, printed.strip("\n") + "\n") is not None


def trimmed(text: str) -> str:
    """Printed text without spaces at the ends of lines."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def run(words: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """A command at the repository's root, in a terminal of 100 columns without colours; no key is in sight."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("ANTHROPIC_")}
    quiet = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONPATH": str(ROOT / "simulator")}
    return subprocess.run(words, cwd=ROOT, env=kept | quiet | environment, capture_output=True, text=True, check=False)
