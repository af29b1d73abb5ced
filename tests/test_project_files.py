"""Which files are searched for the source of a changed text: those of the project, as text, within limits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cachecost.commands.project_files import LARGEST, head_commit, project_folder, read_project_files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with files of every sort, as the working folder."""
    files = {
        "agent.py": b"SYSTEM = 1\n",
        "lib/tools.ts": b"export\n",
        "ignored.py": b"SECRET\n",
        ".gitignore": b"ignored.py\n",
        "reports/mine/recording.txt": b"SYSTEM\n",
        "calls.jsonl": b"{}\n",
        "picture.bin": b"\x89\0\1",
        "large.txt": b"x" * (LARGEST + 1),
        "just.txt": b"x" * LARGEST,
        "latin.txt": b"caf\xe9\n",
        "node_modules/x/index.js": b"x\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_git_says_which_files_belong_to_the_project(folder: Path) -> None:
    subprocess.run(["git", "init", "-q"], check=True, cwd=folder)
    subprocess.run(["git", "add", "agent.py", ".gitignore"], check=True, cwd=folder)
    found = read_project_files(folder / "lib", without=folder / "reports")
    assert list(found) == [
        ".gitignore",
        "agent.py",
        "just.txt",
        "latin.txt",
        "lib/tools.ts",
        "node_modules/x/index.js",
    ]
    assert found["latin.txt"] == "caf\ufffd\n"


def test_without_git_the_folder_is_searched(folder: Path) -> None:
    found = read_project_files(folder, without=Path("reports"))
    assert list(found) == [".gitignore", "agent.py", "ignored.py", "just.txt", "latin.txt", "lib/tools.ts"]


def test_paths_are_those_that_a_command_here_would_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "lib")
    assert "../agent.py" in read_project_files(folder, without=folder / "reports")


def test_there_is_no_commit_without_one(folder: Path) -> None:
    assert head_commit(folder) is None
    subprocess.run(["git", "init", "-q"], check=True, cwd=folder)
    assert head_commit(folder) is None


@pytest.mark.parametrize(
    ("paths", "folder_name"),
    [(["a/scenarios/x.yaml"], "a"), (["a/x.yaml"], "a"), (["a/b/x.yaml", "a/c/y.yaml"], "a")],
)
def test_the_folder_of_a_project(paths: list[str], folder_name: str) -> None:
    assert project_folder(list(map(Path, paths))) == Path(folder_name).resolve()
