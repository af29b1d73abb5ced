"""Prints the changelog's section of a release, if all that the release states agrees.

usage: python -m tools.release_notes v0.1.0

Needs no package, so that the release workflow runs it before it installs anything.
"""

from __future__ import annotations

import re
import runpy
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION = Path("simulator/cachecost/base/version.py")
HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<day>\S+))?$", re.MULTILINE)


def find_section(changelog: str, version: str) -> re.Match[str] | None:
    return next((found for found in HEADING.finditer(changelog) if found["version"] == version), None)


def find_errors(root: Path, tag: str) -> Iterator[str]:
    """What keeps `tag` from being released: each with its file, what was expected and what was found."""
    version = runpy.run_path(str(root / VERSION))["__version__"]
    if tag != f"v{version}":
        yield f"{VERSION}: expected the version of the tag {tag}; got {version}"
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if project["version"] != version:
        yield f"pyproject.toml: project.version: expected {version}; got {project['version']}"
    if "Repository" not in project.get("urls", {}):
        yield "pyproject.toml: project.urls: expected Repository, the address of this repository; got none"
    section = find_section((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    if section is None or not re.fullmatch(r"\d{4}-\d\d-\d\d", section["day"] or ""):
        yield f"CHANGELOG.md: expected a heading '## [{version}] - YYYY-MM-DD'; got none"


def release_notes(changelog: str, version: str) -> str:
    """The section of `version`, without its heading."""
    section = find_section(changelog, version)
    assert section is not None
    following = HEADING.search(changelog, section.end())
    return changelog[section.end() : following.start() if following else None].strip() + "\n"


def main(tag: str) -> int:
    if errors := list(find_errors(ROOT, tag)):
        sys.stderr.writelines(f"{error}\n" for error in errors)
        return 2
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sys.stdout.write(release_notes(changelog, tag.removeprefix("v")))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
