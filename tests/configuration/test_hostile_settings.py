"""Settings files made to break something: each ends with words and exit code 2, and nothing refused is ever set."""

from __future__ import annotations

import random
from pathlib import Path

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cachecost.commands.catalogue import load_named_commands
from cachecost.commands.option_values import command_defaults
from cachecost.configuration.discovery import find_files
from cachecost.configuration.project_settings import GENERAL, REFUSED, SETTABLE, read_settings
from command_runs import run_here
from slow_cases import mostly_slow

COMMANDS = dict(load_named_commands(SETTABLE))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CACHECOST_TOKENS")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.toml").write_text("")
    return tmp_path


def test_every_refused_option_is_refused_in_the_file() -> None:
    for name, options in REFUSED.items():
        header = name.replace(" ", ".")
        Path("cachecost.toml").write_text(f"[{header}]\n" + "".join(f'{key} = "x"\n' for key in options))
        shown = run_here("config").stderr.splitlines()
        assert shown[:-1] == [
            f"cachecost.toml:{number} {header}.{key}: cannot be set in a file: {reason}"
            for number, (key, reason) in enumerate(options.items(), 2)
        ]


TEXTS = {"since": '"7d"', "until": "2026-03-07", "as-of": "2026-03-07", "at": "2026-03-07T12:00:00", "calls": '"1-2"'}
TEXTS |= {"from": TEXTS["at"], "to": TEXTS["at"], "alarm-usd": "0.25", "rule": '["seed=3"]', "rules": '"some.toml"'}
TEXTS |= {"tokens": '"tiktoken"', "source": '"me"', "timezone": '"UTC"'}


def sample(option: click.Parameter, key: str) -> str:
    """A value of the option's type, in TOML."""
    if isinstance(option, click.Option) and option.is_flag:
        return "true"
    if isinstance(option.type, (click.types.IntParamType, click.FloatRange)):
        return "1.5" if isinstance(option.type, click.FloatRange) else "1"
    if isinstance(option.type, click.Choice):
        return TEXTS.get(key) or f'"{option.type.choices[0]}"'
    return '"some.toml"' if isinstance(option.type, click.Path) and key != "reports" else TEXTS.get(key, '"1"')


def test_every_settable_option_takes_a_value_of_its_type() -> None:
    lines, expected = list[str](), dict[str, set[str]]()
    for name, command in COMMANDS.items():
        lines.append(f"[{name.replace(' ', '.')}]")
        for option in command.params:
            key = option.opts[0].removeprefix("--")
            if key in SETTABLE[name]:
                lines.append(f"{key.replace('-', '_')} = {sample(option, key)}")
                expected.setdefault(name, set()).add(option.name or "")
    Path("cachecost.toml").write_text("\n".join(lines))
    stated = read_settings(find_files({}, Path("/"), Path()))
    made = {name: command_defaults(name, command, stated) for name, command in COMMANDS.items()}
    assert [str(fault) for one in made.values() for fault in one.faults] == []
    assert {name: set(one.values) for name, one in made.items()} == expected


KEYS = sorted({key for keys in SETTABLE.values() for key in keys} | set(GENERAL))
WORDS = [*KEYS, *SETTABLE, *REFUSED, "volumes", "tool", "", "a.b", "\x1b[2J"]
NUMBERS = ["1", "-1", "0", "1.5", "nan", "inf", "1e400", "0x" + "f" * 9000, "true"]
TEXT_VALUES = ['""', '"x"', '"\\u0000"', '"../.."', "'/etc/passwd'", "'.'"]
OTHERS = ["[]", "[1, 'a', {}]", "{}", "{a = {b = []}}", "2026-03-07", "10:00:00", "2026-03-07T10:00:00Z"]
entries = st.dictionaries(st.sampled_from(KEYS + WORDS), st.sampled_from(NUMBERS + TEXT_VALUES + OTHERS), max_size=4)
headers = st.sampled_from([*COMMANDS, *WORDS])


def quoted(word: str) -> str:
    return '"' + word.replace("\x1b", "\\u001b") + '"'


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries, st.dictionaries(headers, entries, max_size=4))
def test_any_keys_with_any_values_end_with_words(top: dict[str, str], tables: dict[str, dict[str, str]]) -> None:
    lines = [f"{quoted(key)} = {value}" for key, value in top.items()]
    for header, rows in tables.items():
        lines.append(f"[{'.'.join(map(quoted, header.split() or ['']))}]")
        lines += [f"{quoted(key)} = {value}" for key, value in rows.items()]
    Path("cachecost.toml").write_text("\n".join(lines))
    for line in ("config", "config --all --json", "models", "check"):
        _ends_well(line)


SEED = '[tool.cachecost]\nhost = "bedrock"\nrule = ["seed=3"]\n[tool.cachecost.volumes]\n"my \\" agent" = 4\n'


@pytest.mark.parametrize("number", mostly_slow(range(100), 30))
def test_a_damaged_file_ends_with_words(number: int) -> None:
    """Bytes of a good file are cut, doubled and replaced; input N is always the same."""
    random_of = random.Random(number)
    text = bytearray(SEED.encode())
    for _ in range(random_of.randrange(1, 5)):
        at = random_of.randrange(len(text))
        text[at : at + random_of.randrange(3)] = random_of.choice([b"", b'"', b"[", b"\n", b"=", b".", b"\xff", b"'''"])
    Path("pyproject.toml").write_bytes(bytes(text))
    _ends_well("config")


def _ends_well(line: str) -> None:
    done = run_here(*line.split())
    assert done.returncode in (0, 1, 2, 3), done.stderr
    assert "Traceback" not in done.stderr and "\x1b" not in done.stderr + done.stdout
