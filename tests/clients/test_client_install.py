"""`.ci/clients` with a pretended uv and npm, and what becomes of a client that is not there."""

import shutil
import stat
import subprocess
from pathlib import Path

import clients_bench
import pytest

PYTHON = """
case "$*" in
"-m venv "*) for last; do :; done; mkdir -p "$last/bin" ;;
"-m pip "*)
    echo "pip $*" >>"$LOG"
    [ ! -e offline ] || { echo "ERROR: no network" >&2; exit 1; }
    case "$*" in *uv.txt*) cp "$UV" .clients/uv/bin/uv ;; esac ;;
*) echo 3.14.0 ;;
esac"""
UV = 'echo "uv $*" >>"$LOG"'
NPM = """
echo "npm $*" >>"$LOG"
[ ! -e ../../offline ] || { printf 'npm error code X\\nnpm error no network\\nnpm error A log\\n' >&2; exit 1; }"""


def program(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


class Checkout:
    """A folder with the script, one client of each kind, and programs that write down what they are asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / ".ci").mkdir()
        shutil.copy(clients_bench.ROOT / ".ci/clients", folder / ".ci/clients")
        self.pins = folder / "tests/clients/requirements"
        (self.pins / "two").mkdir(parents=True)
        (self.pins / "uv.txt").write_text("uv==1.0\n")
        (self.pins / "one.txt").write_text("one==1.0\n")
        for name in ("package.json", "package-lock.json"):
            (self.pins / "two" / name).write_text("{}\n")
        program(folder / ".venv/bin/python", PYTHON)
        program(folder / "bin/npm", NPM)
        program(folder / "bin/node", "echo v20.0.0")
        self.uv = program(folder / "bin/uv", UV)

    def run(self, *words: str) -> list[str]:
        """What the script prints, sorted, since it installs several at once."""
        env = {"PATH": f"{self.folder}/bin:/usr/bin:/bin", "LOG": str(self.folder / "log"), "UV": str(self.uv)}
        command = ["/bin/sh", ".ci/clients", *words]
        done = subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return sorted(" ".join(line.split()) for line in done.stdout.splitlines())

    @property
    def installs(self) -> list[str]:
        return [line.split()[0] for line in (self.folder / "log").read_text().splitlines()]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_each_is_installed_once(checkout: Checkout) -> None:
    assert checkout.run() == ["one installed", "two installed", "uv installed"]
    assert sorted(checkout.installs) == ["npm", "pip", "uv"]
    assert checkout.run() == []
    assert len(checkout.installs) == 3


def test_only_what_changed_is_installed_again(checkout: Checkout) -> None:
    checkout.run()
    (checkout.pins / "one.txt").write_text("one==1.1\n")
    assert checkout.run() == ["one installed"]
    (checkout.pins / "two/package-lock.json").write_text('{"changed": 1}\n')
    assert checkout.run() == ["two installed"]


def test_only_those_that_are_named(checkout: Checkout) -> None:
    assert checkout.run("two") == ["two installed", "uv installed"]


def test_one_that_cannot_be_installed_says_why_and_is_tried_again(checkout: Checkout) -> None:
    (checkout.folder / "offline").touch()
    assert checkout.run() == [
        "one not installed: ERROR: no network",
        "two not installed: npm error no network",
        "uv not installed: ERROR: no network",
    ]
    assert (checkout.folder / ".clients/two.failed").read_text() == "npm error no network\n"
    assert not (checkout.folder / ".clients/one").exists()
    (checkout.folder / "offline").unlink()
    assert checkout.run() == ["one installed", "two installed", "uv installed"]
    assert not list((checkout.folder / ".clients").glob("*.failed"))


def outcome(client: str) -> str:
    try:
        clients_bench.folder_of(client)
    except (pytest.skip.Exception, pytest.fail.Exception) as error:
        return f"{type(error).__name__}: {error}"
    return "there"


@pytest.mark.parametrize(
    ("ci", "client", "expected"),
    [
        ("", "anthropic", "Skipped: anthropic is not installed: no network"),
        ("true", "anthropic", "Failed: anthropic is not installed: no network"),
        ("true", "cline", "Skipped: cline is not installed: run .ci/clients"),
        ("true", "llm", "there"),
    ],
)
def test_a_client_that_is_not_there_is_skipped_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ci: str, client: str, expected: str
) -> None:
    (tmp_path / "llm").mkdir()
    (tmp_path / "llm/installed").touch()
    (tmp_path / "anthropic.failed").write_text("no network\n")
    monkeypatch.setattr(clients_bench, "INSTALLED", tmp_path)
    monkeypatch.setenv("CI", ci)
    assert outcome(client) == expected
