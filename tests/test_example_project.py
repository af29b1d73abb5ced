"""A project that has cachecost in its tests: with the built wheel they pass, and a timestamp in its prompt breaks them.

Nothing is fetched: the wheel is built without isolation, and goes into a venv that borrows all else from this one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.slow  # the wheel is built once for all of them
ROOT = Path(__file__).parents[1]
EXAMPLE = Path(__file__).parent / "example_project"
BUILT = ("simulator", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "docs", "scenarios", "reports")
STAMP = """
    import time

    return f"It is {time.time_ns()} now.\\n" + SYSTEM
"""
NOTHING_MORE = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:xdist")


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHON"))}
    variables = {**environment, "COLUMNS": "120"}
    variables.pop("ANTHROPIC_API_KEY", None)
    return subprocess.run(
        [str(one) for one in command], cwd=cwd, env=variables, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built from a copy: nothing is written into the checkout."""
    pytest.importorskip("hatchling", reason="builds the wheel; it is among the packages of the tests")
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in BUILT:
        _copy(ROOT / name, source / name)
    done = run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", target, cwd=source)
    assert done.returncode == 0, done.stderr
    (made,) = target.glob("cachecost-*.whl")
    return made


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copyfile(source, target)


def test_the_wheel_has_the_pages_of_the_mcp_server(wheel: Path) -> None:
    with ZipFile(wheel) as packed:
        names = set(packed.namelist())
    codes = {f"cachecost/pages/codes/{path.name}" for path in (ROOT / "docs/codes").glob("*.md")}
    assert {"cachecost/pages/rulebook.md", *codes} <= names


def test_the_wheel_has_the_licences_of_what_is_in_it(wheel: Path) -> None:
    """Prices are those of genai-prices, ranks those of tiktoken; their licences ask for their notice in each copy."""
    notices = [
        one for of in ("genai-prices", "tiktoken") for one in distribution(of).files or () if one.name == "LICENSE"
    ]
    with ZipFile(wheel) as packed:
        licences = {name: packed.read(name).decode() for name in packed.namelist() if ".dist-info/licenses/" in name}
    assert set(licences.values()) == {*(one.read_text() for one in notices), (ROOT / "LICENSE").read_text()}
    assert len(notices) == 2


def test_the_source_distribution_is_the_repository(tmp_path: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("compares with what git has")
    run(sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", tmp_path, cwd=ROOT)
    (made,) = tmp_path.glob("cachecost-*.tar.gz")
    with tarfile.open(made) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", cwd=ROOT).stdout
    assert names == {*filter(None, listed.split("\0")), "PKG-INFO"}


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh venv with the wheel in it."""
    place = tmp_path_factory.mktemp("venv")
    venv.create(place, with_pip=False)
    made = place / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(made), "install", "--quiet")
    subprocess.run([*pip, "--no-deps", "--no-index", "--no-compile", str(wheel)], check=True)  # Python compiles it
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.run([made, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    # paths in a .pth file come after the venv's own packages; a .pth file of theirs, like ours of here, is not read
    (Path(packages) / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return made


def test_the_wheel_has_the_demo(python: Path, tmp_path: Path) -> None:
    """With its files: both commands that it names are about those."""
    done = run(python, "-m", "cachecost", "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    bill, scenario = (Path(line.split()[-1]) for line in done.stdout.splitlines() if line.startswith("  more: "))
    assert bill.is_file() and scenario.is_file() and not bill.is_relative_to(ROOT), done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    shutil.copytree(EXAMPLE, place, ignore=shutil.ignore_patterns("__pycache__"))
    return place


def pytest_in(project: Path, python: Path) -> subprocess.CompletedProcess[str]:
    """Record the agent's requests anew and run the project's tests, as its CI does."""
    recorded = run(python, "record.py", cwd=project)
    assert recorded.returncode == 0, recorded.stderr
    return run(python, "-m", "pytest", *NOTHING_MORE, *_plugin(python), "--cachecost", "-v", cwd=project)


def _plugin(python: Path) -> tuple[str, ...]:
    """What loads the plugin where the wheel does not tell of it."""
    (entry_points,) = python.parents[1].glob("lib/python*/site-packages/cachecost-*.dist-info/entry_points.txt")
    return () if "cachecost.pytest_plugin" in entry_points.read_text() else ("-p", "cachecost.pytest_plugin")


def outcomes(stdout: str) -> dict[str, str]:
    return dict(re.findall(r"^(\S+::.+?) (PASSED|FAILED)", stdout, re.MULTILINE))


def test_the_venv_has_the_wheel_and_not_the_checkout(python: Path, tmp_path: Path) -> None:
    result = run(python, "-c", "import cachecost, anthropic; print(cachecost.__file__)", cwd=tmp_path)
    assert Path(result.stdout.strip()).is_relative_to(python.parents[1]), result.stderr


def test_the_wheel_has_all_that_init_writes(python: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from cachecost.cli import exit_code; from cachecost.commands.init import init; "
        "sys.exit(exit_code(lambda: init.main([], standalone_mode=False)))"
    )
    result = run(python, "-c", code, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "scenarios" / "my-agent.yaml").exists()


def test_the_project_is_green(project: Path, python: Path) -> None:
    result = pytest_in(project, python)
    assert result.returncode == 0, result.stdout + result.stderr
    assert outcomes(result.stdout) == dict.fromkeys(
        [
            "tests/cost_of_questions.py::test_two_questions_stay_cheap",
            "tests/cost_of_questions.py::test_the_head_of_the_prompt_never_changes",
            "scenarios/weather.yaml::automatic: max_cost_usd",
            "scenarios/weather.yaml::as recorded: max_cost_usd",
            "scenarios/weather.yaml::as recorded: prefix_stable",
        ],
        "PASSED",
    )
    committed = (EXAMPLE / "scenarios" / "recordings" / "weather.jsonl").read_text()
    made = (project / "scenarios" / "recordings" / "weather.jsonl").read_text()
    assert made == committed, "the recording is old: run record.py in tests/example_project"


def test_a_timestamp_in_its_system_prompt_breaks_it(project: Path, python: Path) -> None:
    agent = project / "agent.py"
    before = agent.read_text()
    agent.write_text(before.replace("\n    return SYSTEM\n", STAMP))
    assert agent.read_text() != before
    result = pytest_in(project, python)
    assert result.returncode == 1, result.stdout + result.stderr
    assert set(outcomes(result.stdout).values()) == {"FAILED"}
    said = result.stdout
    assert re.search(r"E +AssertionError: 6 calls cost \$0\.0\d+, \$0\.0\d+ more than the limit of \$0\.01", said)
    assert re.search(r"E +call 2: system\.0 changed at character \d+, since call 1 \(and in 4 more calls\)", said)
    assert re.search(r"E +was  It is \d+", said)
    assert re.search(r"E +AssertionError: system is not stable", said)
    assert re.search(r"✗ weather: as recorded .*since call 2", said, re.DOTALL)
