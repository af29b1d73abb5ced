"""What a settings file says about folders: where scenarios are, and where reports go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cachecost.base.errors import Fault, InputError
from cachecost.configuration.option_classes import SCENARIOS
from cachecost.configuration.project_settings import ProjectSettings, Setting
from cachecost.configuration.values import WrongValue, word_of, words_of

GIT = ".git"


def scenario_files(project: ProjectSettings) -> tuple[Path, ...]:
    """The scenarios that the file names; a folder stands for its *.yaml. Empty where it names none.

    Raises InputError.
    """
    setting = project.general(SCENARIOS)
    if setting is None:
        return ()
    try:
        places = [project.folder / word for word in words_of(setting.value, is_list=True)]
    except WrongValue as error:
        raise InputError([project.fault(setting, str(error))]) from None
    files = tuple(dict.fromkeys(path for place in places for path in _scenarios_at(place)))
    if faults := list(_missing(project, setting, places)):
        raise InputError(faults)
    return files


def _scenarios_at(place: Path) -> list[Path]:
    return sorted(place.glob("*.yaml")) if place.is_dir() else [place]


def _missing(project: ProjectSettings, setting: Setting, places: list[Path]) -> Iterator[Fault]:
    if not places:
        yield project.fault(setting, "expected a folder of scenarios, or a list of files and folders; got none")
    for place in places:
        if place.is_dir() and not _scenarios_at(place):
            yield project.fault(setting, f"expected scenarios (*.yaml) in {place}; there is none")
        elif not place.exists():
            yield project.fault(setting, f"expected a file or folder; there is no {place}")


def reports_folder(project: ProjectSettings) -> Path | None:
    """The folder of reports that the file names, for all commands. Raises InputError."""
    setting = project.general("reports")
    try:
        return None if setting is None else folder_within(project, word_of(setting.value))
    except WrongValue as error:
        assert setting is not None
        raise InputError([project.fault(setting, str(error))]) from None


def folder_within(project: ProjectSettings, word: str) -> Path:
    """The folder `word`, which has to be within that of the file: commands write there. Raises WrongValue."""
    place = project.folder / word
    inner, project_folder = place.resolve(), project.folder.resolve()
    if not inner.is_relative_to(project_folder) or GIT in inner.relative_to(project_folder).parts:
        raise WrongValue(f"expected a folder within that of {project.path}, as files are written there; got {word!r}")
    return place
