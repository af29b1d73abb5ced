"""What a settings file may hold: names in both spellings, and every error of a file at once, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachecost.base.errors import InputError
from cachecost.configuration.discovery import find_files
from cachecost.configuration.project_settings import ProjectSettings, read_settings


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def settings_of(text: str, name: str = "cachecost.toml") -> ProjectSettings:
    Path(name).write_text(text)
    return read_settings(find_files({}, Path("/"), Path()))


def errors_of(text: str, name: str = "cachecost.toml") -> list[str]:
    with pytest.raises(InputError) as error:
        settings_of(text, name)
    return list(map(str, error.value.faults))


def test_names_have_hyphens_or_underscores() -> None:
    stated = settings_of('as_of = 2026-03-07\n[bill]\nall_calls = true\n[watch]\nalarm-usd = "1"\n').settings
    assert [(one.command, one.key) for one in stated] == [("", "as-of"), ("bill", "all-calls"), ("watch", "alarm-usd")]


def test_tables_of_commands_subcommands_and_volumes() -> None:
    text = (
        '[tool.cachecost]\nrules = "r.toml"\n[tool.cachecost.recording.cut]\ncalls = "2-"\n[tool.cachecost.volumes]\n'
    )
    stated = settings_of(f"{text}my_agent = 4\n", "pyproject.toml").settings
    assert [(one.command, one.key, one.value) for one in stated] == [
        ("", "rules", "r.toml"),
        ("recording cut", "calls", "2-"),
        ("volumes", "my_agent", 4),
    ]


def test_the_key_of_a_command_wins_over_that_for_all() -> None:
    settings = settings_of('host = "bedrock"\nas-of = 2026-03-07\n[models]\nhost = "openai"\n')
    assert {option: one.value for option, one in settings.of("models")}["host"] == "openai"
    assert [option for option, _ in settings.of("models")] == ["host", "as-of"]
    assert {option: one.value for option, one in settings.of("rules")}["host"] == "bedrock"


def test_every_error_at_once_in_the_order_of_the_file() -> None:
    text = """\
hosts = "bedrock"
as-of = 2026-03-07
as_of = 2026-03-08
by = "day"
upstream = "https://example.com"
bill = "day"
volumes = 40
tokens = "count_tokens"

[check]
report = "r"
scenarios = "s"
[check.deep]
a = 1

[bil]
by = "day"

[live]
max-usd = 5

[statusline]
format = "{model}"

[recording.cutt]
json = true

[init]
x = 1

[replay]
tokens = "count_tokens"
"""
    assert errors_of(text) == [
        "cachecost.toml:1 hosts: unknown key (did you mean 'host'?)",
        "cachecost.toml:3 as_of: is set twice, as as_of and as as-of",
        "cachecost.toml:4 by: is not for all commands; set it in the table of one: bill",
        "cachecost.toml:5 upstream: cannot be set in a file: it decides what is sent to an API, where, and what that "
        "may cost",
        "cachecost.toml:6 bill: expected a table, [bill]",
        "cachecost.toml:7 volumes: expected a table, SCENARIO = SESSIONS PER DAY a line",
        "cachecost.toml:8 tokens: count_tokens cannot be set in a file: it sends what is counted to an API",
        "cachecost.toml:11 check.report: unknown key (did you mean 'reports'?)",
        "cachecost.toml:12 check.scenarios: is for all commands; set it at the top",
        "cachecost.toml:13 check.deep: unknown key; expected one of reports, sessions-per-day, fail-under, json, "
        "github, badge-shows",
        "cachecost.toml:16 bil: unknown key (did you mean 'bill'?)",
        "cachecost.toml:20 live.max-usd: cannot be set in a file: it decides what is sent to an API, where, and what "
        "that may cost",
        "cachecost.toml:23 statusline.format: cannot be set in a file: a client waits for this command, so it reads "
        "no settings file; set CACHECOST_STATUSLINE",
        "cachecost.toml:25 recording.cutt: unknown key (did you mean 'cut'?)",
        "cachecost.toml:29 init.x: unknown key; nothing of this command is set in a file",
        "cachecost.toml:32 replay.tokens: count_tokens cannot be set in a file: it sends what is counted to an API",
    ]


def test_errors_of_a_pyproject_name_the_whole_path() -> None:
    text = '[project]\nname = "x"\n\n[tool.cachecost.bill]\nall_cals = true\n'
    assert errors_of(text, "pyproject.toml") == [
        "pyproject.toml:5 tool.cachecost.bill.all_cals: unknown key (did you mean 'all-calls'?)"
    ]
    assert errors_of("[tool]\ncachecost = 1\n", "pyproject.toml") == [
        "pyproject.toml:2 tool.cachecost: expected a table"
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("host = \n", "cachecost.toml:1:8 is not TOML: Invalid value"),
        ("host = 'a\n", "cachecost.toml:2 is not TOML: Expected"),
        ("a" + ".a" * 20_000 + " = 1\n", "cachecost.toml:1 expected at most 128 levels of nesting; got more"),
        ("a = " + "[" * 20_000 + "]" * 20_000, "cachecost.toml:1 expected at most 128 levels of nesting; got more"),
        ("port = " + "9" * 5_000, "cachecost.toml:1 expected numbers of at most 4,300 digits; got a longer one"),
        ("#" * (1 << 20) + "\n", "cachecost.toml expected a file of at most 1 MiB; got a larger one"),
        ("\0", "cachecost.toml:1:1 is not TOML: Invalid statement"),
    ],
)
def test_a_damaged_or_hostile_file(text: str, error: str) -> None:
    (found,) = errors_of(text)
    assert found.startswith(error)


def test_a_file_that_is_no_text(folder: Path) -> None:
    (folder / "cachecost.toml").write_bytes(b"host = '\xff'")
    with pytest.raises(InputError, match="cannot be read: it is not UTF-8 text"):
        read_settings(find_files({}, Path("/"), Path()))


def test_a_file_of_nothing_but_errors_ends_with_the_first_thousand() -> None:
    text = "".join(f"k{number} = 1\n" for number in range(1_002))
    errors = errors_of(text)
    assert len(errors) == 1_000
    assert errors[-1].startswith("cachecost.toml:1000 k999: unknown key")
