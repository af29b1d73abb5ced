"""Which file holds for a folder: the nearest, up to .git or home; and what a folder with two files means."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachecost.base.errors import InputError
from cachecost.configuration import discovery
from cachecost.configuration.discovery import MOST_BYTES, find_files, found_files
from cachecost.configuration.project_settings import read_settings

TABLE = '[tool.cachecost]\nhost = "bedrock"\n'
OWN = 'host = "bedrock"\n'
FOLDERS = "owner of the current folder"
OTHER = '[project]\nname = "cachecost-user"\n'


def host_file(start: Path, home: Path, **environment: str) -> Path | None:
    """The file that holds for the folder `start`, from there."""
    settings = read_settings(find_files(environment, home, start))
    return None if settings.path is None else settings.path.resolve()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"a/b/cachecost.toml": OWN}, "a/b/cachecost.toml"),
        ({"a/b/pyproject.toml": TABLE}, "a/b/pyproject.toml"),
        ({"a/b/pyproject.toml": OTHER, "a/cachecost.toml": OWN}, "a/cachecost.toml"),
        ({"a/b/pyproject.toml": "[tool.other]\n", "a/pyproject.toml": TABLE}, "a/pyproject.toml"),
        ({"a/b/pyproject.toml": OTHER, "a/b/cachecost.toml": OWN}, "a/b/cachecost.toml"),
        ({"a/b/cachecost.toml": OWN, "a/cachecost.toml": "nonsense"}, "a/b/cachecost.toml"),
        ({"a/.git/HEAD": "", "a/cachecost.toml": OWN}, "a/cachecost.toml"),
        ({"a/.git": "gitdir: elsewhere", "cachecost.toml": OWN}, None),
        ({"a/b/.git/HEAD": "", "a/cachecost.toml": OWN}, None),
        ({"cachecost.toml": OWN}, "cachecost.toml"),
        ({"../cachecost.toml": OWN}, None),
        ({"a/b/cachecost.toml/x": "a folder", "a/cachecost.toml": OWN}, "a/cachecost.toml"),
        ({"a/b/cachecost.toml": ""}, "a/b/cachecost.toml"),
    ],
)
def test_the_nearest_file_up_to_git_and_home(tmp_path: Path, files: dict[str, str], expected: str | None) -> None:
    """The home folder is `home`; the command runs in `home/a/b`."""
    home = tmp_path / "home"
    (home / "a" / "b").mkdir(parents=True)
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    assert host_file(home / "a" / "b", home) == (expected and home / expected)


def test_two_files_in_a_folder_are_an_error_that_names_both(tmp_path: Path) -> None:
    (tmp_path / "cachecost.toml").write_text("")
    (tmp_path / "pyproject.toml").write_text(TABLE)
    with pytest.raises(InputError) as error:
        read_settings(find_files({}, tmp_path, tmp_path))
    both = "cachecost.toml and [tool.cachecost] of pyproject.toml both hold settings; keep one of them"
    assert [(Path(fault.file).name, fault.message) for fault in error.value.faults] == [
        ("cachecost.toml", both),
        ("pyproject.toml", both),
    ]


def test_a_variable_names_a_file_or_none(tmp_path: Path) -> None:
    (tmp_path / "cachecost.toml").write_text(OWN)
    (tmp_path / "ci.toml").write_text(OWN)
    assert host_file(tmp_path, tmp_path, CACHECOST_CONFIG="off") is None
    assert host_file(tmp_path, tmp_path, CACHECOST_CONFIG=str(tmp_path / "ci.toml")) == tmp_path / "ci.toml"
    with pytest.raises(InputError, match="cannot be read: No such file or directory"):
        host_file(tmp_path, tmp_path, CACHECOST_CONFIG="missing.toml")


@pytest.mark.parametrize(
    ("owner", "is_read"),
    [("root", True), ("user", True), ("owner of the current folder", True), ("somebody", False)],
)
def test_a_file_above_that_somebody_else_put_there_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str, is_read: bool
) -> None:
    """In a shared folder as /tmp: its `scenarios` could have `check` run a command of theirs."""
    users = {"root": 0, "user": 1000, "owner of the current folder": 1001, "somebody": 1002}
    (tmp_path / "mine").mkdir()
    (tmp_path / "cachecost.toml").write_text(OWN)
    monkeypatch.setattr(discovery.os, "getuid", lambda: users["user"], raising=False)
    monkeypatch.setattr(discovery, "_owner", lambda path: users[owner] if path.suffix else users[FOLDERS])
    found = find_files({}, Path("/"), tmp_path / "mine")
    assert bool(found.folders) is is_read


def test_where_was_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path / "a" / "b")
    monkeypatch.delenv("CACHECOST_CONFIG", raising=False)
    assert [str(folder) for folder in found_files().looked] == [".", "..", "../.."]


def test_a_folder_that_is_gone_has_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("CACHECOST_CONFIG", raising=False)
    folder.rmdir()
    assert found_files() == ((), ())
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "is_ours"),
    [
        ("pyproject.toml", b"[project]\n", False),
        ("pyproject.toml", b"not TOML, and another tool's matter = = =", False),
        ("pyproject.toml", TABLE.encode(), True),
        ("pyproject.toml", b"#" * MOST_BYTES + TABLE.encode(), False),
        ("cachecost.toml", b"", True),
    ],
)
def test_a_file_that_is_not_ours_is_not_parsed(tmp_path: Path, name: str, content: bytes, is_ours: bool) -> None:
    (tmp_path / name).write_bytes(content)
    assert find_files({}, tmp_path, tmp_path).may_have_settings is is_ours
