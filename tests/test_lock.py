"""requirements.lock pins what pyproject.toml asks for, once for each Python, and names no machine."""

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cachecost.base.version import __version__

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements.lock").read_text()
PINS = [Requirement(line) for line in LOCK.splitlines() if line and not line.lstrip().startswith("#")]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
GROUPS = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def holds(requirement: Requirement, python: str) -> bool:
    environment = {"python_version": python, "python_full_version": f"{python}.9", "sys_platform": "linux"}
    return requirement.marker is None or requirement.marker.evaluate({**environment, "extra": ""})


CASES = [(asked, python) for asked in map(Requirement, chain(*GROUPS)) for python in PYTHONS if holds(asked, python)]


@pytest.mark.parametrize(("asked", "python"), CASES, ids=str)
def test_each_requirement_has_one_fitting_pin(asked: Requirement, python: str) -> None:
    pins = [pin for pin in PINS if canonicalize_name(pin.name) == canonicalize_name(asked.name) and holds(pin, python)]
    assert len(pins) == 1, f"{asked}: run make lock"
    (version,) = (specifier.version for specifier in pins[0].specifier)
    assert version in asked.specifier


def test_every_line_is_an_exact_pin_of_a_public_release() -> None:
    for pin in PINS:
        assert [specifier.operator for specifier in pin.specifier] == ["=="]
        assert pin.url is None
    assert not re.search(r"https?:|file:|--|/(root|home|tmp|opt|work)/", LOCK)


def test_the_package_states_the_version_of_pyproject() -> None:
    assert PROJECT["version"] == __version__
