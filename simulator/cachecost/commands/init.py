"""`cachecost init`: a scenario, a recording and a CI workflow in the current project."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

import click

from cachecost.base.errors import Fault, InputError
from cachecost.base.exit_codes import ExitCode
from cachecost.base.installation import PLACEHOLDER, workflow_requirement

SCENARIO = "scenarios/my-agent.yaml"
RECORDING = "scenarios/recordings/my-agent.jsonl"
SCHEMA = "scenarios/scenario.schema.json"
WORKFLOW = ".github/workflows/cachecost.yml"
ABOUT = {
    SCENARIO: "the cost of a session under four strategies, and a budget",
    RECORDING: "a made-up session of 16 calls; replace it with one of yours",
    SCHEMA: "JSON Schema of scenarios, for editors",
    WORKFLOW: "checks the budget in every pull request",
}
NEW = ".cachecost-new"
NEXT = """
Next:
{cd}  cachecost run {scenario}
  cachecost check --update          writes reports/my-agent/baseline.json; commit it with the rest
  cachecost check                   what CI runs; exit code 1 if a budget is exceeded

Then use a session of your own: point your agent at `cachecost record`, or import its log with
  cachecost import LOG -o {recording} --content digest     (stores no text)
"""

NO_SOURCE = """
{workflow} cannot know yet where to install cachecost from: this copy came from a folder or file of
this machine. Write the address of a repository that has it, and a commit, in place of REPOSITORY and COMMIT.
"""


@click.command()
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def init(folder: Path, force: bool) -> int:
    """Write a scenario, a small recording and a GitHub workflow to DIR (default: the current folder).

    If any of the files exists, nothing is written unless --force is given.
    """
    contents = starting_files()
    if not force:
        _check_absent(folder, contents)
    write_all(folder, contents)
    for name, about in ABOUT.items():
        click.echo(f"{folder / name!s:<40} {about}")
    cd = "" if folder == Path() else f"  cd {folder}\n"
    click.echo(NEXT.format(cd=cd, scenario=SCENARIO, recording=RECORDING), nl=False)
    if PLACEHOLDER in contents[WORKFLOW]:
        click.echo(NO_SOURCE.format(workflow=WORKFLOW), nl=False)
    return ExitCode.OK


def starting_files() -> dict[str, str]:
    """The text of each file by its path from the project root."""
    from cachecost.scenario.text import schema_text

    shipped = files("cachecost.commands.templates")
    workflow = shipped.joinpath("cachecost.yml").read_text(encoding="utf-8")
    return {
        SCENARIO: shipped.joinpath("my-agent.yaml").read_text(encoding="utf-8"),
        RECORDING: shipped.joinpath("my-agent.jsonl").read_text(encoding="utf-8"),
        SCHEMA: schema_text(),
        WORKFLOW: workflow.replace("@CACHECOST@", workflow_requirement()),
    }


def _check_absent(folder: Path, contents: Mapping[str, str]) -> None:
    there = [folder / name for name in contents if os.path.lexists(folder / name)]
    if there:
        raise InputError([Fault(str(path), "exists already; overwrite it with --force") for path in there])


def _check_replaceable(places: Iterable[Path]) -> None:
    """Raises InputError for a folder in the place of a file."""
    if folders := [place for place in places if place.is_dir()]:
        raise InputError([Fault(str(place), "expected a file, or nothing; got a folder") for place in folders])


def write_all(folder: Path, contents: Mapping[str, str]) -> None:
    """Write all files or none: each is written under a temporary name before the first is moved. Raises OSError."""
    places = [folder / name for name in contents]
    missing = {parent for place in places for parent in place.parents if not parent.exists()}
    try:
        for place, text in zip(places, contents.values(), strict=True):
            place.parent.mkdir(parents=True, exist_ok=True)
            _temporary(place).write_text(text, encoding="utf-8", newline="\n")
        _check_replaceable(places)
        for place in places:
            _temporary(place).replace(place)
    finally:
        _clear(places, missing)


def _temporary(place: Path) -> Path:
    return place.with_name(place.name + NEW)


def _clear(places: Iterable[Path], folders: Iterable[Path]) -> None:
    """Remove temporary files, and those of `folders` that are empty."""
    for place in places:
        with suppress(OSError):
            _temporary(place).unlink()
    for empty in sorted(folders, key=lambda path: -len(path.parts)):
        with suppress(OSError):  # not empty: in use
            empty.rmdir()
