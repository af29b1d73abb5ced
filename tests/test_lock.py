"""The lock files pin what pyproject.toml asks for, once for each Python and with hashes, and name no machine."""

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cachecost.base.version import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
ALWAYS, BUILD = PROJECT["project"]["dependencies"], PROJECT["dependency-groups"]["build"]
ASKED = {
    "requirements.lock": [*ALWAYS, *chain(*EXTRAS.values()), *BUILD],
    "requirements-server.lock": [*ALWAYS, *EXTRAS["server"]],
    "requirements-build.lock": BUILD,
}
"""What each lock file has to hold."""
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def holds(requirement: Requirement, python: str) -> bool:
    environment = {"python_version": python, "python_full_version": f"{python}.9", "sys_platform": "linux"}
    return requirement.marker is None or requirement.marker.evaluate({**environment, "extra": ""})


def blocks(name: str) -> list[str]:
    """The pins of a lock file, each with its hashes."""
    lines = [line for line in (ROOT / name).read_text().splitlines() if not line.lstrip().startswith("#")]
    return "\n".join(lines).replace("\\\n", " ").splitlines()


def pins(name: str) -> list[Requirement]:
    return [Requirement(block.partition("--hash")[0].strip()) for block in blocks(name)]


PINS = {name: pins(name) for name in ASKED}
CASES = [
    (name, asked, python)
    for name, lines in ASKED.items()
    for asked in map(Requirement, lines)
    for python in PYTHONS
    if holds(asked, python)
]


@pytest.mark.parametrize(("name", "asked", "python"), CASES, ids=str)
def test_each_requirement_has_one_fitting_pin(name: str, asked: Requirement, python: str) -> None:
    wanted = canonicalize_name(asked.name)
    found = [pin for pin in PINS[name] if canonicalize_name(pin.name) == wanted and holds(pin, python)]
    assert len(found) == 1, f"{asked}: run make lock"
    (version,) = (specifier.version for specifier in found[0].specifier)
    assert version in asked.specifier


@pytest.mark.parametrize("name", ASKED)
def test_every_line_is_an_exact_pin_of_a_public_release(name: str) -> None:
    for pin in PINS[name]:
        assert [specifier.operator for specifier in pin.specifier] == ["=="]
        assert pin.url is None
    text = (ROOT / name).read_text().replace("--hash", "")
    assert not re.search(r"https?:|file:|--|/(root|home|tmp|opt|work)/", text)


@pytest.mark.parametrize("name", ASKED)
def test_every_pin_has_its_hashes(name: str) -> None:
    for block in blocks(name):
        _, *hashes = block.split("--hash=")
        assert hashes, block
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one.strip()) for one in hashes)


@pytest.mark.parametrize("name", ["requirements-server.lock", "requirements-build.lock"])
def test_the_small_locks_have_the_versions_of_the_whole_one(name: str) -> None:
    assert set(map(str, PINS[name])) <= set(map(str, PINS["requirements.lock"])), "run make lock"


def test_the_package_states_the_version_of_pyproject() -> None:
    assert PROJECT["project"]["version"] == __version__
