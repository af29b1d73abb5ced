"""`.ci/find-python` and `.ci/setup` against pretended Pythons: small sh scripts that answer or fail as told."""

import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

CI = Path(__file__).parents[1] / ".ci"
SUITS = 'echo "$0"'
SHIM = 'echo "pyenv: $0: command not found" >&2; exit 127'
SYSTEM = "/usr/bin:/bin"


def program(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def find_python(home: Path, *words: str, path: str = "a:b") -> subprocess.CompletedProcess[str]:
    env = {"HOME": str(home), "PATH": ":".join(str(home / name) for name in path.split(":"))}
    return subprocess.run(["/bin/sh", CI / "find-python", *words], env=env, capture_output=True, text=True, check=False)


LOCKS = ("requirements.lock", "requirements-server.lock", "requirements-build.lock")
PYENV = ".pyenv/versions"


@pytest.mark.parametrize(
    ("pythons", "expected"),
    [
        ({"a/python3.11": SUITS, "a/python3.13": SUITS, "a/python3": SUITS}, "a/python3.13"),
        ({"a/python3.13": SHIM, "a/python3.12": SUITS}, "a/python3.12"),
        ({"a/python3.13": SHIM, "b/python3.13": SUITS}, "b/python3.13"),
        ({"a/python3.13": SHIM, f"{PYENV}/3.13.0/bin/python3.13": SUITS}, f"{PYENV}/3.13.0/bin/python3.13"),
        ({"a/python3.12": SUITS, f"{PYENV}/3.14.1/bin/python3.14": SUITS}, f"{PYENV}/3.14.1/bin/python3.14"),
        ({"a/python3.12": SUITS, f"{PYENV}/3.10.9/bin/python3.10": SUITS}, "a/python3.12"),
        ({"a/python3.11": "exit 1", "b/python3": SUITS}, "b/python3"),
        ({"a/python3": SHIM, "a/python": SUITS}, "a/python"),
    ],
)
def test_newest_python_that_answers(tmp_path: Path, pythons: dict[str, str], expected: str) -> None:
    for name, body in pythons.items():
        program(tmp_path / name, body)
    assert find_python(tmp_path).stdout == f"{tmp_path / expected}\n"


def test_no_python_is_said_with_the_way_out(tmp_path: Path) -> None:
    program(tmp_path / "a/python3.13", SHIM)
    result = find_python(tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.splitlines()[0] == "no Python >= 3.11 found that runs and can 'import venv, ensurepip'"


def test_a_named_python_is_the_only_one_tried(tmp_path: Path) -> None:
    good = program(tmp_path / "a/python3.13", SUITS)
    bad = program(tmp_path / "c/python3.9", "exit 1")
    assert find_python(tmp_path, str(good)).stdout == f"{good}\n"
    result = find_python(tmp_path, str(bad))
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"PYTHON={bad}: expected a Python >= 3.11 that runs and can 'import venv, ensurepip'\n"


def test_the_python_below_an_environment_is_found(tmp_path: Path) -> None:
    found = Path(find_python(tmp_path, sys.executable).stdout.strip())
    assert found.exists()
    assert not (found.parent.parent / "pyvenv.cfg").exists()


class Checkout:
    """A folder with the setup script, and one Python that writes down what pip is asked for."""

    PRETENDED = """
case "$*" in
*ensurepip*) echo "$0" ;;
*"import pip"*) ;;
"-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
"-m pip install "*) echo "$*" >>pip.log; [ ! -e offline ] ;;
*) echo 3.14.0 ;;
esac"""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(CI, folder / ".ci")
        (folder / "pyproject.toml").write_text("a")
        for name in LOCKS:
            (folder / name).write_text("b")
        self.python = program(folder / "bin/python3.14", self.PRETENDED)

    def setup(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {"HOME": str(self.folder), "PATH": f"{self.python.parent}:{SYSTEM}"}
        command = ["/bin/sh", ".ci/setup", *words]
        return subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, check=False)

    @property
    def installs(self) -> list[str]:
        """What pip was told to install, one item a call: a lock file or two, then the package."""
        log = self.folder / "pip.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line.partition(" :all: ")[2] for line in lines]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


HASHED = "--no-deps --require-hashes --requirement"
PACKAGE = "--no-deps --no-build-isolation --editable ."
DEMO = [f"{HASHED} requirements-server.lock --requirement requirements-build.lock", PACKAGE]
TEST = [f"{HASHED} requirements.lock", PACKAGE]


def test_a_second_run_does_and_says_nothing(checkout: Checkout) -> None:
    first = checkout.setup("demo")
    assert [line.split()[0] for line in first.stdout.splitlines()] == ["venv", "install"]
    second = checkout.setup("demo")
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    assert checkout.installs == DEMO


def test_the_tests_packages_serve_the_demo_but_not_the_other_way_round(checkout: Checkout) -> None:
    for purpose in ("demo", "test", "demo", "test"):
        assert checkout.setup(purpose).returncode == 0
    assert checkout.installs == [*DEMO, *TEST]


@pytest.mark.parametrize("name", ["pyproject.toml", *LOCKS])
def test_changed_requirements_are_installed_again(checkout: Checkout, name: str) -> None:
    checkout.setup("test")
    before = (checkout.folder / name).read_text()
    (checkout.folder / name).write_text("changed")
    again = checkout.setup("demo")
    assert [line.split()[0] for line in again.stdout.splitlines()] == ["install"]
    (checkout.folder / name).write_text(before)
    checkout.setup("test")
    assert checkout.installs == [*TEST, *DEMO, *TEST]


def test_an_environment_whose_python_is_gone_is_built_anew(checkout: Checkout) -> None:
    checkout.setup("demo")
    (checkout.folder / ".venv/bin/python").unlink()
    again = checkout.setup("demo")
    assert [line.split()[0] for line in again.stdout.splitlines()] == ["venv", "install"]


def test_an_environment_made_for_another_folder_is_built_anew(checkout: Checkout) -> None:
    checkout.setup("demo")
    (checkout.folder / ".venv/made-for").write_text("/elsewhere\n")
    assert checkout.setup("demo").stdout.startswith("venv ")


def test_a_failed_installation_is_tried_again(checkout: Checkout) -> None:
    (checkout.folder / "offline").touch()
    assert checkout.setup("test").returncode != 0
    (checkout.folder / "offline").unlink()
    assert checkout.setup("test").returncode == 0
    assert checkout.installs == [TEST[0], *TEST]


def test_another_python_asked_for_replaces_the_environment(checkout: Checkout) -> None:
    checkout.setup("demo")
    assert checkout.setup("demo", str(checkout.python)).stdout == ""
    other = program(checkout.folder / "other/python3.12", checkout.PRETENDED.replace("3.14.0", "3.12.7"))
    assert "with Python 3.12.7" in checkout.setup("demo", str(other)).stdout
    assert checkout.setup("demo", str(other)).stdout == ""


def test_an_unknown_purpose_is_refused(checkout: Checkout) -> None:
    result = checkout.setup("prod")
    assert result.returncode == 2
    assert result.stderr.startswith("usage: .ci/setup demo|test|lock")
