"""A tag is released only if version, changelog and metadata agree; what is printed is the changelog's section."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cachecost.base.version import __version__
from tools.release_notes import VERSION, find_errors, release_notes

ROOT = Path(__file__).parents[1]
CHANGELOG = """# Changelog

## [Unreleased]

## [0.2.0] - 2026-12-01

### Added

- Two.

## [0.1.0] - 2026-11-01

- One.
"""
PROJECT = """[project]
version = "{version}"
[project.urls]
{url} = "https://example.org/cachecost"
"""


def repository(
    folder: Path, *, changelog: str = CHANGELOG, version: str = "0.2.0", project: str = "0.2.0", url: str = "Repository"
) -> Path:
    (folder / VERSION).parent.mkdir(parents=True)
    (folder / VERSION).write_text(f'__version__ = "{version}"\n')
    (folder / "pyproject.toml").write_text(PROJECT.format(version=project, url=url))
    (folder / "CHANGELOG.md").write_text(changelog)
    return folder


def test_what_agrees_can_be_released(tmp_path: Path) -> None:
    assert list(find_errors(repository(tmp_path), "v0.2.0")) == []


@pytest.mark.parametrize(
    ("tag", "changed", "error"),
    [
        ("v0.3.0", {}, f"{VERSION}: expected the version of the tag v0.3.0; got 0.2.0"),
        ("0.2.0", {}, f"{VERSION}: expected the version of the tag 0.2.0; got 0.2.0"),
        ("v0.2.0", {"project": "0.1.0"}, "pyproject.toml: project.version: expected 0.2.0; got 0.1.0"),
        (
            "v0.2.0",
            {"url": "Homepage"},
            "pyproject.toml: project.urls: expected Repository, the address of this repository; got none",
        ),
        (
            "v0.2.0",
            {"changelog": CHANGELOG.replace(" - 2026-12-01", "")},
            "CHANGELOG.md: expected a heading '## [0.2.0] - YYYY-MM-DD'; got none",
        ),
        (
            "v0.2.0",
            {"changelog": "## [Unreleased]\n"},
            "CHANGELOG.md: expected a heading '## [0.2.0] - YYYY-MM-DD'; got none",
        ),
    ],
)
def test_what_does_not_agree_is_named(tmp_path: Path, tag: str, changed: dict[str, str], error: str) -> None:
    assert list(find_errors(repository(tmp_path, **changed), tag)) == [error]


def test_the_notes_are_the_section_of_the_version() -> None:
    assert release_notes(CHANGELOG, "0.2.0") == "### Added\n\n- Two.\n"
    assert release_notes(CHANGELOG, "0.1.0") == "- One.\n"


def test_all_errors_of_this_repository_are_printed_at_once() -> None:
    """Nothing is released yet: the tag of the version itself still lacks what only a release brings."""
    command = [sys.executable, "-m", "tools.release_notes", "v999.0.0"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"{VERSION}: expected the version of the tag v999.0.0; got {__version__}" in ended.stderr.splitlines()


def test_the_changelog_has_the_form_that_is_read() -> None:
    first = re.search(r"^## .*$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first is not None
    assert first[0] == "## [Unreleased]"
