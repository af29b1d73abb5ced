"""Options have their values from the command line, else the environment, else the file, else the built-in default."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from cachecost.commands.catalogue import load_named_commands
from cachecost.configuration.project_settings import SETTABLE
from check_projects import bodies, project
from command_runs import run_here

PRICES = """\
[[price]]
host = "anthropic"
model = "claude-opus-4-6"
input = 1000
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that commands run in, with a log without bills."""
    monkeypatch.delenv("CACHECOST_TOKENS")
    monkeypatch.chdir(tmp_path)
    rows = [{"timestamp": f"2026-03-07T10:0{n}:00Z", "request": body} for n, body in enumerate(bodies(2))]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path


def settings(text: str, name: str = "cachecost.toml") -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)


def printed(line: str, cwd: Path | None = None) -> str:
    done = run_here(*line.split(), cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def error(line: str) -> str:
    done = run_here(*line.split())
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


def first_host(line: str) -> str:
    return str(json.loads(printed(line))["models"][0]["host"])


@pytest.mark.parametrize(
    ("file", "words", "expected"),
    [
        ("", "", "anthropic"),
        ('host = "openai"', "", "openai"),
        ('[models]\nhost = "bedrock"', "", "bedrock"),
        ('host = "openai"\n[models]\nhost = "bedrock"', "", "bedrock"),
        ('host = "openai"', "--host anthropic", "anthropic"),
        ('host = "openai"\n[models]\nhost = "bedrock"', "--host xai", "xai"),
        ('[rules]\nhost = "openai"', "", "anthropic"),
    ],
)
def test_who_wins(file: str, words: str, expected: str) -> None:
    settings(file)
    assert first_host(f"models --json {words}") == expected
    settings("[tool.cachecost]\n" + file.replace("[", "[tool.cachecost."), "pyproject.toml")
    Path("cachecost.toml").unlink()
    assert first_host(f"models --json {words}") == expected


SOURCES = [
    ("", "", "", "tiktoken"),
    ("bytes", "", "", "bytes"),
    ("bytes", "tiktoken", "", "tiktoken"),
    ("tiktoken", "bytes", "", "bytes"),
    ("bytes", "bytes", "tiktoken", "tiktoken"),
    ("tiktoken", "", "bytes", "bytes"),
]


@pytest.mark.parametrize(("file", "variable", "option", "expected"), SOURCES)
def test_the_environment_stands_between_command_line_and_file(
    file: str, variable: str, option: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tokens(words: str) -> object:
        return json.loads(printed(f"replay log.jsonl --json {words}").splitlines()[0])["usage"]

    wanted = tokens(f"--tokens {expected}")
    if variable:
        monkeypatch.setenv("CACHECOST_TOKENS", variable)
    settings(f'tokens = "{file}"' if file else "")
    if file or variable or option:
        assert tokens(f"--tokens {option}" if option else "") == wanted
    assert tokens("--tokens bytes") != tokens("--tokens tiktoken")


@pytest.mark.parametrize("name", ["as-of", "as_of"])
@pytest.mark.parametrize("value", ["2026-03-01", '"2026-03-01"'])
def test_a_day_in_both_spellings_and_as_text(name: str, value: str) -> None:
    wanted = printed("models --json --as-of 2026-03-01")
    assert printed("models --json") != wanted
    settings(f"{name} = {value}\n")
    assert printed("models --json") == wanted


@pytest.mark.parametrize(
    "value",
    [
        '["visibility_lag_probability=1", "visibility_lag_s=900"]',
        "{visibility_lag_probability = 1, visibility_lag_s = 900}",
        "{visibility_lag_probability = 1.0, visibility_lag_s = '900'}",
    ],
)
def test_assumptions_as_a_list_and_as_a_table(value: str) -> None:
    line = "replay log.jsonl --json --tokens bytes"
    wanted = printed(f"{line} --rule visibility_lag_probability=1 --rule visibility_lag_s=900")
    assert printed(line) != wanted
    settings(f"rule = {value}\n")
    assert printed(line) == wanted


def test_a_list_on_the_command_line_replaces_that_of_the_file() -> None:
    settings('[replay]\nstrategy = ["automatic", "none"]\n')
    assert [json.loads(row)["strategy"] for row in printed("replay log.jsonl --json").splitlines()] == [
        "automatic",
        "automatic",
        "none",
        "none",
    ]
    one = printed("replay log.jsonl --json --strategy progressive").splitlines()
    assert {json.loads(row)["strategy"] for row in one} == {"progressive"}


def test_a_flag_that_is_on_is_off_without_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    settings("[strategies]\njson = true\n")
    assert printed("strategies").startswith("{")
    monkeypatch.setenv("CACHECOST_CONFIG", "off")
    assert not printed("strategies").startswith("{")


def test_a_flag_with_two_names() -> None:
    settings("[optimize]\npings = false\njson = true\n")
    assert printed("optimize log.jsonl --tokens bytes") == printed(
        "optimize log.jsonl --tokens bytes --no-pings --json"
    )


@pytest.mark.parametrize("name", ["cachecost.toml", "pyproject.toml"])
def test_paths_start_at_the_file(folder: Path, name: str) -> None:
    settings(PRICES, "prices/own.toml")
    table = "[tool.cachecost]\n" if name == "pyproject.toml" else ""
    settings(f'{table}prices = "prices/own.toml"\n', name)
    (folder / "deep" / "down").mkdir(parents=True)
    wanted = printed("models --json --prices prices/own.toml")
    assert printed("models --json") == wanted
    inner = printed("models --json", folder / "deep" / "down")
    assert inner.replace("../../prices/own.toml", "prices/own.toml") == wanted


def test_a_strategy_file_starts_at_the_file(folder: Path) -> None:
    settings("{name: own, preset: automatic}\n", "plans/own.yaml")
    settings('[replay]\nstrategy = "plans/own.yaml"\n')
    (folder / "deep").mkdir()
    for words, cwd in (("log.jsonl", folder), ("../log.jsonl", folder / "deep")):
        rows = printed(f"replay {words} --json --tokens bytes", cwd).splitlines()
        assert {json.loads(row)["strategy"] for row in rows} == {"own"}


def test_a_subcommand_has_its_own_table() -> None:
    settings('[recording.cut]\ncalls = "1"\n')
    assert printed("recording cut log.jsonl -o cut.jsonl").startswith("cut.jsonl  1 of ")


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ('host = "bedrok"', "models", "1 host: expected one of anthropic, "),
        ("\nhost = 3", "models", "2 host: expected one of anthropic, "),
        ("host = ['openai']", "models", "1 host: expected one value; got a list of 1"),
        ("host = true", "models", "1 host: expected a text or a number; got true"),
        ("[models]\njson = 1", "models", "2 models.json: expected true or false; got 1"),
        ('[models]\njson = "yes"', "models", "2 models.json: expected true or false; got 'yes'"),
        ("[bill]\nby = 'dy'", "bill", "2 bill.by: expected one of session, project, branch, pr, day, week, month, "),
        ("[bill]\nsince = 'soon'", "bill", "2 bill.since: "),
        ("as-of = 2026-13-01", "models", "1:13 is not TOML: Expected newline or end of document"),
        ("as-of = 'then'", "models", "1 as-of: expected a date like 2026-03-07; got 'then'"),
        ("as-of = 10:00:00", "models", "1 as-of: expected a text or a number; got 10:00:00"),
        ("prices = 'no.toml'", "models", "1 prices: File 'no.toml' does not exist."),
        ("prices = '.'", "models", "1 prices: File '.' is a directory."),
        ('prices = "a\\u0000b"', "models", "1 prices: expected a text of at most 4,096 characters, without a null"),
        ("rule = ['ttl_in_key']", "models", "1 rule: expected NAME=VALUE; got 'ttl_in_key'"),
        ("rule = {ttl_in_keys = 1}", "models", "1 rule: ttl_in_keys: unknown rule (did you mean 'ttl_in_key'?)"),
        ("[rule]\nttl_in_key = 3", "models", "1 rule: ttl_in_key: expected one of false, true; got '3'"),
        ("[replay]\ncapacity = [0]", "replay log.jsonl", "2 replay.capacity: 0 is not in the range x>=1."),
        ("[replay]\ncapacity = 1.5", "replay log.jsonl", "2 replay.capacity: '1.5' is not a valid integer range."),
        ("[watch]\nevery = inf", "watch", "2 watch.every: expected a number from -10,000,000,000,000 to "),
        ("[watch]\nevery = nan", "watch", "2 watch.every: expected a number from "),
        ("[watch]\nevery = 0", "watch", "2 watch.every: 0.0 is not in the range 0.1<=x<=3600."),
        ("[watch]\nalarm-usd = 'x'", "watch", "2 watch.alarm-usd: "),
        (f"[serve]\nport = 0x{'f' * 9_000}", "serve", "2 serve.port: expected a number from -10,000,000,000,000 to "),
        ("[serve]\nport = 70000", "serve", "2 serve.port: 70000 is not in the range 0<=x<=65535."),
        ("tokens = 'byte'", "replay log.jsonl", "1 tokens: expected one of calibrated, auto, bytes, ctok, native,"),
        ("[check]\nreports = '..'", "check", "2 check.reports: expected a folder within that of cachecost.toml, "),
        ("reports = '.git/hooks'", "check", "1 reports: expected a folder within that of cachecost.toml, as files"),
        ("reports = '/tmp'", "check", "1 reports: expected a folder within that of cachecost.toml, as files are"),
        ("scenarios = 'no'", "check", "1 scenarios: expected a file or folder; there is no no"),
        ("scenarios = '.'", "check", "1 scenarios: expected scenarios (*.yaml) in .; there is none"),
        ("scenarios = []", "check", "1 scenarios: expected a folder of scenarios, or a list of files and folders"),
        ("[volumes]\na = 0", "check", "2 volumes.a: expected a whole number from 1 to 999,999,999; got 0"),
        ("[volumes]\na = 1.5", "check", "2 volumes.a: expected a whole number from 1 to 999,999,999; got 1.5"),
        ("sessions-per-day = 0", "check", "1 sessions-per-day: 0 is not in the range x>=1."),
    ],
)
def test_a_wrong_value_is_named_with_its_line(text: str, line: str, expected: str) -> None:
    settings(text)
    assert error(line).startswith(f"cachecost.toml:{expected}")


def test_all_wrong_values_of_a_command_at_once_with_the_nearest_names() -> None:
    settings('host = "bedrok"\nas_of = "x"\n[bill]\nby = "mnth"\n[models]\njson = 1\n')
    assert [row.partition(":")[2].rpartition(" (did ")[2] for row in error("bill").splitlines()[:3:2]] == [
        "you mean 'bedrock'?)",
        "you mean 'month'?)",
    ]
    assert error("bill").endswith("3 errors; nothing was run.\n")
    assert error("models").endswith("3 errors; nothing was run.\n")


def test_a_source_of_counts_that_a_command_lacks_is_left_to_the_others() -> None:
    settings('tokens = "bytes"\n')
    assert "bytes" in json.dumps(json.loads(printed("config --json --all")))
    assert run_here("validate", "log.jsonl").returncode == 3  # it has neither bytes nor a bill here
    settings('[validate]\ntokens = "bytes"\n')
    assert error("validate log.jsonl").startswith("cachecost.toml:2 validate.tokens: expected one of ctok, tiktoken; ")


def test_an_error_about_an_option_of_the_file_names_its_place() -> None:
    settings('[replay]\nmodel = "claude-opus-4-6"\n')
    assert error("replay log.jsonl").endswith(
        "--model: expected --strategy or --all too; without them each call keeps its own model; "
        "--model is set at cachecost.toml:2\n"
    )


def test_options_of_bill_that_do_not_go_with_session_give_way(folder: Path) -> None:
    settings('[bill]\nby = "day"\nall-calls = true\n')
    assert run_here("bill", folder, "--json").returncode == 0
    assert "--by" not in run_here("bill", folder, "--session", "x").stderr
    assert "--by: not with" in run_here("bill", folder, "--session", "x", "--by", "day").stderr


def test_help_version_and_completion_read_no_file() -> None:
    wanted = [printed("--help"), printed("--version"), printed("bill --help"), printed("recording cut -h")]
    settings("not TOML")
    assert [printed("--help"), printed("--version"), printed("bill --help"), printed("recording cut -h")] == wanted
    assert "not TOML" in error("models")
    words = {"COMP_WORDS": "cachecost bill --by d", "COMP_CWORD": "3", "_CACHECOST_COMPLETE": "bash_complete"}
    command = [sys.executable, "-m", "cachecost"]
    done = subprocess.run(command, env={**os.environ, **words}, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("plain,day\n", "")


@pytest.mark.parametrize("line", ["init here", "statusline", "hook"])
def test_commands_that_read_no_file_run_beside_a_damaged_one(line: str) -> None:
    settings("not TOML")
    assert run_here(*line.split(), stdin="{}").returncode == 0


def _value(default: object) -> str:
    return str(default).lower() if isinstance(default, bool) else json.dumps(default)


LINES = (
    "replay log.jsonl",
    "explain log.jsonl --json",
    "lint log.jsonl",
    "optimize log.jsonl",
    "whatif log.jsonl --json",
    "bill scenarios/calls.jsonl",
    "next log.jsonl --json --tokens 5 --at 2026-03-07T12:00",
    "check",
    "run scenarios/mine.yaml --json --no-report",
    "explain scenarios/mine.yaml",
    "sweep scenarios/mine.yaml --seeds 1 --jobs 1 --json",
    "strategies",
    "models",
    "rules",
)


def built_in_defaults() -> str:
    """A file that states the built-in default of every option that has one."""
    lines = list[str]()
    for name, command in load_named_commands(SETTABLE):
        lines.append(f"[{name.replace(' ', '.')}]")
        context = click.Context(command)
        for option in command.params:
            key = option.opts[0].removeprefix("--")
            default = option.get_default(context)
            if key in SETTABLE[name] and isinstance(default, (bool, int, float, str)):
                lines.append(f"{key} = {_value(default)}")
    return "\n".join(lines)


def test_a_file_that_states_the_defaults_changes_no_output(folder: Path) -> None:
    """A file with every option that has a default; the last line shows that it is read."""
    project(folder / "scenarios")
    assert run_here("check", "--update").returncode == 0
    text = built_in_defaults()
    assert text.count("\n") > 60
    before = [run_here(*line.split()) for line in LINES]
    settings(text)
    after = [run_here(*line.split()) for line in LINES]
    assert [vars(one) for one in after] == [vars(one) for one in before]
    settings(text.replace('host = "auto"', 'host = "bedrock"'))
    assert first_host("models --json") == "bedrock"
