"""The environment of a command: which variables it gets."""

from __future__ import annotations

import pytest

from cachecost.live.agent_runs.processes import environment_of, secrets_in_environment
from cachecost.live.server.served_api import PLACEHOLDER

ADDRESS = "http://127.0.0.1:8787"
VALUE = "value-0123456789"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ANTHROPIC_API_KEY", PLACEHOLDER),
        ("OPENAI_API_KEY", PLACEHOLDER),
        ("GEMINI_API_KEY", PLACEHOLDER),
        ("GOOGLE_API_KEY", PLACEHOLDER),
        ("ANTHROPIC_BASE_URL", ADDRESS),
        ("OPENAI_BASE_URL", f"{ADDRESS}/v1"),
        ("GOOGLE_GEMINI_BASE_URL", ADDRESS),
        ("CACHECOST_TURNS", '["Grüße", "b"]'),
        ("PYTHONHASHSEED", "1"),
        ("NO_PROXY", "127.0.0.1,localhost"),
        ("ANTHROPIC_AUTH_TOKEN", None),
        ("MISTRAL_API_KEY", None),
        ("MISTRAL_APIKEY", None),
        ("AWS_SECRET_ACCESS_KEY", None),
        ("AWS_PROFILE", None),
        ("GOOGLE_APPLICATION_CREDENTIALS", None),
        ("CLAUDE_CODE_OAUTH_TOKEN", None),
        ("OPENAI_ORG_ID", None),
        ("GITHUB_TOKEN", None),
        ("DB_PASSWORD", None),
        ("https_proxy", None),
        ("HTTP_PROXY", None),
        ("PATH", VALUE),
        ("LC_ALL", VALUE),
        ("VIRTUAL_ENV", VALUE),
        ("path", None),
        ("LC_", None),
        ("GITHUB_ENV", None),
        ("SSH_AUTH_SOCK", None),
        ("DATABASE_URL", None),
        ("NODE_OPTIONS", None),
        ("LD_PRELOAD", None),
    ],
)
def test_a_variable(name: str, value: str | None) -> None:
    assert environment_of({name: VALUE}, {}, ADDRESS, ["Grüße", "b"], 0).get(name) == value


def test_variables_of_the_scenario_are_added_and_never_lead_elsewhere() -> None:
    more = {"DB_PASSWORD": "x", "ANTHROPIC_BASE_URL": "https://api.anthropic.com", "PYTHONHASHSEED": "0"}
    found = environment_of({"DB_PASSWORD": VALUE}, more, ADDRESS, [], 1)
    assert (found["DB_PASSWORD"], found["ANTHROPIC_BASE_URL"], found["PYTHONHASHSEED"]) == ("x", ADDRESS, "0")


def test_secrets_are_the_values_of_credentials_that_are_long_enough() -> None:
    outside = {"A_KEY": "12345678", "B_TOKEN": "123456789", "C_SECRET": "1234567", "PATH": VALUE}
    assert secrets_in_environment(outside, {}) == ["123456789", "12345678"]
