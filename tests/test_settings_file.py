"""`bill --apply`: what it writes into Claude Code's settings file, and when it does not."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cachecost.analysis.bill.advice import Advice
from cachecost.base.atomic_files import CannotWrite
from cachecost.base.errors import InputError
from cachecost.commands.project_files import apply_advice, ineffective_settings, settings_path, with_advice
from cachecost.providers.clients.settings import client_settings


def advice(name: str, value: object) -> Advice:
    return Advice("about", "change", "how", Decimal(1), client_settings().settings[name], value)


HOUR, SEARCH, WINDOW = advice("main_ttl", "1h"), advice("tool_search", "true"), advice("auto_compact_window", 100_000)
HABIT = Advice("habit", "one model a session", "choose it first", Decimal(2))


@pytest.mark.parametrize(
    ("settings", "given", "expected"),
    [
        ({}, [HOUR], {"promptCacheTtl": "1h"}),
        ({"model": "opus"}, [HOUR, HABIT], {"model": "opus", "promptCacheTtl": "1h"}),
        ({"env": {"A": "1"}}, [SEARCH], {"env": {"A": "1", "ENABLE_TOOL_SEARCH": "true"}}),
        ({"env": None}, [SEARCH, WINDOW], {"env": {"ENABLE_TOOL_SEARCH": "true"}, "autoCompactWindow": 100_000}),
        ({"promptCacheTtl": "1h"}, [HABIT], {"promptCacheTtl": "1h"}),
    ],
)
def test_what_is_set(settings: dict[str, Any], given: list[Advice], expected: dict[str, Any]) -> None:
    before = json.dumps(settings)
    assert with_advice(settings, given) == expected
    assert json.dumps(settings) == before


def test_a_file_is_written_only_when_that_is_confirmed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
    path = settings_path(environment)
    assert path == tmp_path / "config" / "settings.json"
    assert not apply_advice([HOUR], False, environment)
    shown = capsys.readouterr()
    assert shown.out == f'{path}\n  promptCacheTtl: not set -> "1h"\n'
    assert shown.err == f"{path}: not written; --yes writes it without asking\n"
    assert not path.exists()
    assert apply_advice([HOUR], True, environment)
    assert json.loads(path.read_text()) == {"promptCacheTtl": "1h"}
    capsys.readouterr()
    assert not apply_advice([HOUR], True, environment)
    assert capsys.readouterr().err == f"{path}: nothing to change\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[1]", "expected a JSON object; got something else: Expected `object`, got `array`"),
        ("{", "expected a JSON object; got something else"),
        ('{"a": NaN}', "expected a JSON object; got something else"),
        ('{"a": "\\ud800"}', "expected a JSON object; got something else"),
        ('{"a": 1} x', "expected a JSON object; got something else"),
    ],
)
def test_a_file_that_is_no_object_stays(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(InputError, match=why):
        apply_advice([HOUR], True, {"CLAUDE_CONFIG_DIR": str(tmp_path)})
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("environment", "given", "expected"),
    [
        ({}, HOUR, []),
        ({"CLAUDE_CODE_PROMPT_CACHE_TTL": "1h"}, HOUR, []),
        (
            {"CLAUDE_CODE_PROMPT_CACHE_TTL": "5m"},
            HOUR,
            ["promptCacheTtl: the TTL stays 5m, as the environment decides (env)"],
        ),
        (
            {"FORCE_PROMPT_CACHING_5M": "1"},
            HOUR,
            ["promptCacheTtl: the TTL stays 5m, as the environment decides (force 5m env)"],
        ),
        (
            {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "200000"},
            WINDOW,
            ["CLAUDE_CODE_AUTO_COMPACT_WINDOW is set in the environment and wins over autoCompactWindow"],
        ),
        ({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100k"}, WINDOW, []),
    ],
)
def test_a_variable_wins_over_the_file(environment: dict[str, str], given: Advice, expected: list[str]) -> None:
    assert list(ineffective_settings(with_advice({}, [given]), [given], environment)) == expected


# ------------------------------------------------------------------------------- other people's files stay whole

OWN = """{
    "env": {"ANTHROPIC_API_KEY": "sk-ant-PLANTED-1"},
    "apiKeyHelper": "cat /PLANTED-2",
    "limit": 1e400, "deep": {"a":[1,  2]},
    "promptCacheTtl": "5m"
}
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A settings file with secrets, closed to others."""
    path = tmp_path / "settings.json"
    path.write_text(OWN)
    path.chmod(0o600)
    return path


def apply(folder: Path, *given: Advice, is_confirmed: bool = True) -> bool:
    return apply_advice(given, is_confirmed, {"CLAUDE_CONFIG_DIR": str(folder)})


def test_every_other_value_stays_as_it_stood(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert apply(own.parent, HOUR, SEARCH)
    text = own.read_text()
    for part in ("1e400", '{"a":[1,  2]}', '"sk-ant-PLANTED-1"', '"cat /PLANTED-2"'):
        assert part in text
    assert list(json.loads(text)) == ["env", "apiKeyHelper", "limit", "deep", "promptCacheTtl"]
    assert json.loads(text)["env"] == {**json.loads(OWN)["env"], "ENABLE_TOOL_SEARCH": "true"}
    shown = "".join(capsys.readouterr())
    assert "PLANTED" not in shown
    assert '  promptCacheTtl: "5m" -> "1h"\n  env.ENABLE_TOOL_SEARCH: not set -> "true"\n' in shown or (
        '  env.ENABLE_TOOL_SEARCH: not set -> "true"\n  promptCacheTtl: "5m" -> "1h"\n' in shown
    )


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_the_permissions_stay(own: Path, mode: int) -> None:
    own.chmod(mode)
    assert apply(own.parent, HOUR)
    assert own.stat().st_mode & 0o777 == mode
    assert own.with_name("settings.json.cachecost-backup").stat().st_mode & 0o777 == mode


def test_what_was_there_is_kept_once(own: Path) -> None:
    assert apply(own.parent, HOUR)
    assert apply(own.parent, WINDOW)
    assert own.with_name("settings.json.cachecost-backup").read_text() == OWN
    assert sorted(path.name for path in own.parent.iterdir()) == ["settings.json", "settings.json.cachecost-backup"]


def test_a_link_is_followed(own: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "claude.json"
    real.parent.mkdir()
    own.rename(real)
    own.symlink_to(real)
    assert apply(tmp_path, HOUR)
    assert own.is_symlink()
    assert json.loads(real.read_text())["promptCacheTtl"] == "1h"


def test_a_read_only_file_is_not_written(own: Path) -> None:
    own.chmod(0o444)
    with pytest.raises(CannotWrite, match="is read-only; not written"):
        apply(own.parent, HOUR)
    assert own.read_text() == OWN


def test_a_change_made_meanwhile_is_not_lost(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The person answers the question; another program wrote while it stood."""

    def answer(path: Path) -> bool:
        path.write_text('{"theme": "dark"}')
        return True

    monkeypatch.setattr("cachecost.commands.project_files._confirms", answer)
    with pytest.raises(CannotWrite, match="changed by another program meanwhile; not written, try again"):
        apply(own.parent, HOUR, is_confirmed=False)
    assert own.read_text() == '{"theme": "dark"}'


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    assert apply(tmp_path / "new", HOUR)
    assert (tmp_path / "new" / "settings.json").stat().st_mode & 0o777 == 0o600
