"""`cachecost init`: a scenario and a CI workflow in the current project; the agent that it runs is looked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import click

from cachecost.base.errors import ExitCode, Fault, InputError
from cachecost.base.extras import PLACEHOLDER
from cachecost.commands.project_sources import (
    ABOUT,
    ABOUT_AGENT,
    RECORDING,
    SCENARIO,
    WORKFLOW,
    find_entry_point,
    starting_files,
)

NEW = ".cachecost-new"
NEXT = """
Next:
{cd}  cachecost run {scenario}
  cachecost check --update          writes reports/my-agent/baseline.json; commit it with the rest
  cachecost check                   what CI runs; exit code 1 if a budget is exceeded

Then use a session of your own: point your agent at `cachecost record`, or import its log with
  cachecost import LOG -o {recording} --content digest     (stores no text)

No agent was found: no program here imports anthropic, openai, google.genai, langchain or the like. To have `check` run
yours, write `command: python agent.py` in place of `recording:` in {scenario}.
"""
NEXT_AGENT = """
Agent: {command}   ({reason})
Model: {model}

Next:
{cd}  cachecost check --update          runs the agent, writes reports/my-agent/; commit it with the rest
  cachecost check                   what CI runs; exit code 1 if a budget is exceeded

If the agent starts in another way, change `command` and `turns` in {scenario}.
"""

NO_SOURCE = """
{workflow} cannot know yet where to install cachecost from: this copy came from a folder or file of
this machine. Write the address of a repository that has it, and a commit, in place of REPOSITORY and COMMIT.
"""


@click.command()
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def init(folder: Path, force: bool) -> int:
    """Write a scenario and a GitHub workflow to DIR (default: the current folder).

    The scenario runs the agent of DIR: a script of package.json or pyproject.toml, or a file like agent.py that
    imports a client of a model's API. Files are only read, nothing is executed. If there is none, a small recording is
    written in its place. If any of the files exists, nothing is written unless --force is given.
    """
    agent = find_entry_point(folder)
    contents = starting_files(folder, agent)
    if not force and (there := [folder / name for name in contents if os.path.lexists(folder / name)]):
        raise InputError([Fault(str(path), "exists already; overwrite it with --force") for path in there])
    write_all(folder, contents)
    about = {**ABOUT, SCENARIO: ABOUT_AGENT} if agent else ABOUT
    for name in contents:
        click.echo(f"{folder / name!s:<40} {about[name]}")
    cd = "" if folder == Path() else f"  cd {folder}\n"
    if agent:
        found = agent.model
        model = (
            f"{found.id}   ({found.file}:{found.line})" if found else "that of its first call; the source names none"
        )
        words = NEXT_AGENT.format(command=agent.command, reason=agent.reason, model=model, cd=cd, scenario=SCENARIO)
    else:
        words = NEXT.format(cd=cd, scenario=SCENARIO, recording=RECORDING)
    click.echo(words, nl=False)
    if PLACEHOLDER in contents[WORKFLOW]:
        click.echo(NO_SOURCE.format(workflow=WORKFLOW), nl=False)
    return ExitCode.OK


def write_all(folder: Path, contents: Mapping[str, str]) -> None:
    """Write all files or none: each is written under a temporary name before the first is moved. Raises OSError."""
    places = [folder / name for name in contents]
    missing = {parent for place in places for parent in place.parents if not parent.exists()}
    try:
        for place, text in zip(places, contents.values(), strict=True):
            place.parent.mkdir(parents=True, exist_ok=True)
            _temporary(place).write_text(text, encoding="utf-8", newline="\n")
        if folders := [place for place in places if place.is_dir()]:
            raise InputError([Fault(str(place), "expected a file, or nothing; got a folder") for place in folders])
        for place in places:
            _temporary(place).replace(place)
    finally:
        for place in places:
            with suppress(OSError):
                _temporary(place).unlink()
        for empty in sorted(missing, key=lambda path: -len(path.parts)):
            with suppress(OSError):  # not empty: in use
                empty.rmdir()


def _temporary(place: Path) -> Path:
    return place.with_name(place.name + NEW)
