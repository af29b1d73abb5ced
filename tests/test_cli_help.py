"""Help, errors and shell completion: what `--help` lists and where, and what the shell completes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cachecost.base.errors import MEANINGS, ExitCode, Fault, InputError
from cachecost.cli import COMMANDS, cachecost, exit_code
from cachecost.commands.catalogue import COMMAND_GROUPS
from slow_cases import mostly_slow

WORDS_NOT_USED = re.compile(
    r"\b(asked|told|wish(es)?|dear(er|est)?|(?<!--)beside|whole story|a fault|lifetimes?|words to)\b", re.I
)
RULES_AND_PRICES = ("--rule", "--rules", "--prices", "--as-of", "--host")
COMMAND = (sys.executable, "-m", "cachecost")


def commands(group: click.Group = cachecost, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command and subcommand by the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{before}{name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")


EVERY = dict(commands())


def help_of(name: str) -> str:
    return EVERY[name].get_help(click.Context(EVERY[name], info_name=name, terminal_width=100, max_content_width=100))


def complete(line: str, at: int) -> list[str]:
    environment = {**os.environ, "COMP_WORDS": line, "COMP_CWORD": str(at), "_CACHECOST_COMPLETE": "bash_complete"}
    done = subprocess.run(COMMAND, env=environment, capture_output=True, text=True, check=True)
    return [row.removeprefix("plain,") for row in done.stdout.splitlines()]


def test_help_shows_every_command_in_its_group_and_every_exit_code() -> None:
    shown = cachecost.get_help(click.Context(cachecost, info_name="cachecost", terminal_width=100))
    sections = dict(re.findall(r"^(\w[^\n]*):\n((?:  .*\n?)+)", shown, flags=re.M))
    for heading, names in COMMAND_GROUPS.items():
        assert re.findall(r"^  (\w+)", sections[heading], flags=re.M) == list(names)
    assert re.findall(r"^  (\d+)", sections["Exit codes"], flags=re.M) == [str(int(code)) for code in ExitCode]
    assert set(MEANINGS) == set(ExitCode)


def test_a_summary_is_the_first_sentence_of_the_help() -> None:
    summaries = {name: row.summary for group in COMMAND_GROUPS.values() for name, row in group.items()}
    assert summaries == {name: EVERY[name].get_short_help_str(limit=sys.maxsize) for name in summaries}


def test_help_imports_no_command() -> None:
    code = "import sys; from cachecost.cli import cachecost; cachecost.main(['--help'], standalone_mode=False); "
    code += "print(*(name for name in sys.modules if name.startswith('cachecost.')))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    modules = {row.place.partition(":")[0] for group in COMMAND_GROUPS.values() for row in group.values()}
    assert not {f"cachecost.commands.{name}" for name in modules} & set(shown.splitlines()[-1].split())


def test_no_command_is_in_two_groups() -> None:
    assert len(COMMANDS) == sum(map(len, COMMAND_GROUPS.values())) == 27


@pytest.mark.parametrize("name", EVERY)
def test_every_help_begins_with_a_sentence_and_says_what_each_option_does(name: str) -> None:
    command = EVERY[name]
    first = (command.help or "").split("\n\n")[0]
    assert first.endswith(".") and first[0].isupper()
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help and option.help[0].isupper(), option.name
    assert not WORDS_NOT_USED.search(help_of(name))


@pytest.mark.parametrize("name", ["replay", "import", "serve", "live", "models"])
def test_options_of_rules_and_prices_stand_last_under_their_heading(name: str) -> None:
    own, heading, shared = help_of(name).partition("\nRules and prices:\n")
    assert heading and "--help" in own
    expected = [flag for flag in RULES_AND_PRICES if any(flag in option.opts for option in EVERY[name].params)]
    assert re.findall(r"^  (--[\w-]+)", shared, flags=re.M) == expected
    assert not set(expected) & set(re.findall(r"^  (--[\w-]+)", own, flags=re.M))


def test_a_command_without_these_options_has_no_such_heading() -> None:
    assert "Rules and prices" not in help_of("strategies")


def fail(error: Exception) -> None:
    raise error


def test_errors_are_counted_and_an_internal_error_names_its_place(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CACHECOST_DEBUG", raising=False)
    assert exit_code(lambda: fail(InputError([Fault("a.yaml", "is empty", 1), Fault("b.yaml", "is empty")]))) == 2
    assert capsys.readouterr().err == "a.yaml:1 is empty\nb.yaml is empty\n2 errors; nothing was run.\n"
    assert exit_code(lambda: fail(RuntimeError("no"))) == 70
    message = (
        r"internal error: RuntimeError: no \(at test_cli_help\.py:\d+; set CACHECOST_DEBUG=1 for the traceback\)\n"
    )
    assert re.fullmatch(message, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", "complete -o nosort -F _cachecost_completion cachecost"),
        ("zsh", "#compdef cachecost"),
        ("fish", "complete --no-files --command cachecost"),
    ],
)
def test_the_completion_script_of_each_shell_is_printed(shell: str, line: str) -> None:
    environment = {**os.environ, "_CACHECOST_COMPLETE": f"{shell}_source"}
    done = subprocess.run(COMMAND, env=environment, capture_output=True, text=True, check=True)
    assert line in done.stdout and f"_CACHECOST_COMPLETE={shell}_complete" in done.stdout


def test_the_shell_completes_commands_options_and_choices() -> None:
    assert complete("cachecost val", 1) == ["validate"]
    assert sorted(complete("cachecost recording c", 2)) == ["concat", "cut"]
    assert complete("cachecost replay --strat", 2) == ["--strategy"]
    assert complete("cachecost replay --host s", 3) == ["sglang"]


def test_the_page_of_installing_shows_what_switches_completion_on() -> None:
    page = (Path(__file__).parents[1] / "docs" / "how-to" / "install.md").read_text()
    assert all(f"_CACHECOST_COMPLETE={shell}_source cachecost" in page for shell in ("bash", "zsh", "fish"))


@pytest.mark.parametrize("words", mostly_slow(["validate", "replay", "explain", "whatif", "lint", "bill"], 2))
def test_a_command_that_draws_nothing_loads_no_charts(words: str) -> None:
    """matplotlib takes 0.8 s to import."""
    code = "import sys; from cachecost.cli import cachecost; cachecost.main(sys.argv[1:], standalone_mode=False); "
    code += "print('matplotlib' in sys.modules, file=sys.stderr)"
    logs = Path(__file__).parents[1] / "scenarios/recordings/traffic/bedrock"
    log = str(next(iter(sorted(logs.glob("*agent_tool_roundtrip_smoke.jsonl")))))
    done = subprocess.run([sys.executable, "-c", code, words, log], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "False"
