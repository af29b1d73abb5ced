"""No output is an input: every command × every output option × every way to name the same file."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from cachecost.cli import COMMANDS
from cachecost.commands.catalogue import load_command
from cachecost.commands.output_paths import CheckedCommand, OutputPath, PagePath
from command_runs import printed, run_here
from hostile.seeds import PRICES, SCENARIO
from hostile.test_inert import log_with
from slow_cases import mostly_slow

FILES = ("log.jsonl", "rec.jsonl", "s.yaml", "own.toml")
WORDS = {
    "replay": ["replay", "log.jsonl", "--tokens", "bytes"],
    "validate": ["validate", "log.jsonl"],
    "explain": ["explain", "s.yaml"],
    "whatif": ["whatif", "log.jsonl", "--tokens", "bytes"],
    "optimize": ["optimize", "log.jsonl", "--tokens", "bytes"],
    "lint": ["lint", "log.jsonl"],
    "bill": ["bill", "log.jsonl"],
    "view": ["view", "log.jsonl"],
    "import": ["import", "log.jsonl", "--force"],
    "run": ["run", "s.yaml"],
    "check": ["check", "s.yaml"],
    "sweep": ["sweep", "s.yaml", "--jobs", "1", "--grid", "conversation.synthetic.turns=2"],
    "live": ["live", "s.yaml", "--dry-run", "--max-usd", "1"],
    "serve": ["serve", "--answers", "recording:rec.jsonl", "--port", "0"],
    "recording concat": ["recording", "concat", "log.jsonl", "--force"],
    "recording cut": ["recording", "cut", "log.jsonl", "--calls", "1-2", "--force"],
    "recording split": ["recording", "split", "log.jsonl"],
}
"""A call of every command that writes and reads; `record` reads nothing."""
SUFFIXES = (".jsonl", ".yaml")
INPUTS = {
    name: next(word.removeprefix("recording:") for word in words if word.endswith(SUFFIXES))
    for name, words in WORDS.items()
}


def commands() -> Iterator[tuple[str, click.Command]]:
    for name in COMMANDS:
        command = load_command(COMMANDS[name])
        if isinstance(command, click.Group):
            yield from ((f"{name} {one}", inner) for one, inner in command.commands.items())
        else:
            yield name, command


def outputs() -> list[tuple[str, str]]:
    """Every option that names an output, and its command."""
    return [
        (name, max(param.opts, key=len))
        for name, command in commands()
        for param in command.params
        if isinstance(param.type, OutputPath) and name != "record"
    ]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs") / "project"
    folder.mkdir()
    log_with("x", folder)
    (folder / "s.yaml").write_text(SCENARIO)
    (folder / "own.toml").write_text(PRICES)
    printed("import", folder / "log.jsonl", "-o", folder / "rec.jsonl")
    return folder


@pytest.fixture
def folder(project: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(project, tmp_path / "project"))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def symlink(place: Path) -> str:
    (place.parent / "link").symlink_to(place.name)
    return "link"


def hard_link(place: Path) -> str:
    (place.parent / "linked").hardlink_to(place)
    return "linked"


SPELLINGS: dict[str, Callable[[Path], str]] = {
    "its name": lambda place: place.name,
    "its path": lambda place: str(place.resolve()),
    "a way around": lambda place: f"../{place.parent.name}/{place.name}",
    "a link": symlink,
    "a hard link": hard_link,
}


def test_every_command_with_an_output_is_checked_and_called_here() -> None:
    assert {name for name, _ in outputs()} == set(WORDS)
    for name, command in commands():
        named = [param for param in command.params if isinstance(param.type, OutputPath)]
        assert not named or isinstance(command, CheckedCommand), name
        plain = [param for param in command.params if type(param.type) is click.Path and not param.type.exists]
        assert {param.name for param in plain} <= {"scenario", "reports", "folder", "settings"}, (name, plain)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(("name", "option"), mostly_slow(outputs(), 12))
def test_an_output_that_is_an_input_is_refused(name: str, option: str, spelling: str, folder: Path) -> None:
    place = SPELLINGS[spelling](folder / INPUTS[name])
    before = contents(folder)
    done = run_here(*WORDS[name], option, place, cwd=folder)
    assert done.returncode == 2 and not done.stdout, (done.stdout, done.stderr)
    assert f"{option} {place}: would overwrite what this command reads: choose another place" in done.stderr
    assert contents(folder) == before


@pytest.mark.parametrize(("option", "value"), [("--prices", "own.toml"), ("--strategy", "plan.yaml")])
def test_files_of_other_options_are_inputs_too(option: str, value: str, folder: Path) -> None:
    (folder / "plan.yaml").write_text("name: own\nbreakpoints: [last_tool, automatic]\n")
    done = run_here(*WORDS["replay"], option, value, "--csv", value, cwd=folder)
    assert done.returncode == 2 and f"--csv {value}: would overwrite what this command reads" in done.stderr


@pytest.mark.parametrize("place", ["s.yaml", "own.toml", "rec.jsonl", "S.YAML"])
@pytest.mark.parametrize("option", ["--html", "--csv"])
def test_a_page_does_not_take_the_place_of_a_file_that_is_read(option: str, place: str, folder: Path) -> None:
    (folder / "S.YAML").write_text(SCENARIO)
    before = contents(folder)
    done = run_here("explain", "log.jsonl", "--tokens", "bytes", option, place, cwd=folder)
    assert done.returncode == 2 and contents(folder) == before
    assert f"{option} {place}: would overwrite a file of another kind: choose another place" in done.stderr


@pytest.mark.parametrize("option", ["--sarif", "--gitlab", "--markdown", "--junit", "--badge", "--history"])
def test_a_baseline_is_not_overwritten(option: str, folder: Path) -> None:
    assert run_here("check", "s.yaml", "--update", cwd=folder).returncode == 0
    before = contents(folder)
    done = run_here("check", "s.yaml", option, "reports/fuzzed/baseline.json", cwd=folder)
    assert done.returncode == 2 and contents(folder) == before and "would overwrite a file" in done.stderr


@pytest.mark.parametrize("other", ["x.out", "./x.out", "X.out", "link"])
def test_two_outputs_are_two_files(other: str, folder: Path) -> None:
    (folder / "link").symlink_to("x.out")
    done = run_here(*WORDS["replay"], "--csv", "x.out", "--html", other, cwd=folder)
    assert done.returncode == 2 and "too: choose another place" in done.stderr and not (folder / "x.out").exists()


@pytest.mark.parametrize("name", ["run", "validate", "optimize"])
def test_a_folder_of_inputs_is_no_output(name: str, folder: Path) -> None:
    before = contents(folder)
    done = run_here(*WORDS[name], "--emit" if name == "optimize" else "--out", ".", cwd=folder)
    assert done.returncode == 2 and contents(folder) == before
    assert f" .: is the folder of {INPUTS[name]}, which this command reads: choose another place" in done.stderr


def test_a_page_is_a_file(folder: Path) -> None:
    done = run_here(*WORDS["replay"], "--csv", "/dev/null", cwd=folder)
    assert done.returncode == 2 and "--csv /dev/null: expected a file; got a device or a pipe" in done.stderr
    assert not Path("/dev/null").is_file()


def test_every_error_is_said_at_once(folder: Path) -> None:
    done = run_here(*WORDS["replay"], "--csv", "log.jsonl", "--html", "s.yaml", cwd=folder)
    assert done.returncode == 2 and "2 errors; nothing was run." in done.stderr


def test_older_pages_are_replaced(folder: Path) -> None:
    for _ in range(2):
        words = [*WORDS["replay"], "--csv", "rows.csv", "--html", "page.html"]
        done = run_here(*words, cwd=folder)
        assert done.returncode == 3 and done.stderr == "rows.csv written\npage.html written\n"
        checked = ["--sarif", "s.json", "--gitlab", "g.json", "--junit", "j.xml", "--markdown", "c.md"]
        assert run_here("check", "s.yaml", *checked, cwd=folder).returncode in (1, 3)
        assert run_here("import", "log.jsonl", "-o", ".", "--format", "auto", cwd=folder).returncode == 2
        assert run_here("import", "log.jsonl", "-o", "made", cwd=folder).returncode == 0


def test_a_comment_without_content_is_an_empty_file_and_a_shell_sees_that(folder: Path) -> None:
    scenario = folder / "s.yaml"
    scenario.write_text(SCENARIO.replace("max_cost_usd: 40, ", "").replace(", min_cache_hit_rate: 10%", ""))
    assert run_here("check", "s.yaml", "--update", cwd=folder).returncode == 0
    comment = folder / "comment.md"
    comment.write_text("an older comment")
    assert run_here("check", "s.yaml", "--markdown", "comment.md", cwd=folder).returncode == 0
    assert comment.read_bytes() == b""
    assert subprocess.run(["test", "-s", comment], check=False).returncode == 1


def test_page_suffixes_are_of_pages() -> None:
    kinds = [param.type for _, command in commands() for param in command.params if isinstance(param.type, PagePath)]
    assert {suffix for kind in kinds for suffix in kind.suffixes} == {".json"}
