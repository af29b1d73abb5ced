"""`bill --apply`: what it writes into Claude Code's settings file, and when it does not."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cachecost.analysis.bill.advice import Advice
from cachecost.base.errors import InputError
from cachecost.commands.settings_file import apply_advice, ineffective_settings, settings_path, with_advice
from cachecost.providers.clients.setting_rows import client_settings


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
    assert '+  "promptCacheTtl": "1h"' in shown.out
    assert shown.err == f"{path}: not written; --yes writes it without asking\n"
    assert not path.exists()
    assert apply_advice([HOUR], True, environment)
    assert json.loads(path.read_text()) == {"promptCacheTtl": "1h"}
    capsys.readouterr()
    assert not apply_advice([HOUR], True, environment)
    assert capsys.readouterr().err == f"{path}: nothing to change\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [("[1]", "expected a JSON object; got list"), ("{", "expected a JSON object; got")],
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
