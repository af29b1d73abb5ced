"""Keys are told apart and never shown."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.live.keys import redact_text, remove_secrets, secrets_in, secrets_of, without, workspace_of

KEY = "sk-ant-api03-planted/key"


def test_a_key_names_a_workspace_and_cannot_be_read_from_it() -> None:
    one, other = workspace_of({"x-api-key": KEY}), workspace_of({"x-api-key": KEY + "2"})
    assert one != other
    assert len(one) == 8 and one not in KEY
    assert workspace_of({"authorization": f"Bearer {KEY}"}) == one
    assert workspace_of({}) == ""


def test_secrets_are_found_in_headers_and_taken_out_of_texts() -> None:
    secrets = secrets_in(
        {"authorization": f"Bearer {KEY}", "x-api-key": KEY, "cookie": "short", "accept": "a" * 20}.items()
    )
    assert secrets == [KEY]
    escaped = KEY.replace("/", "\\/")
    assert without(f'{{"a": "{KEY}", "b": "x{escaped}y"}}'.encode(), secrets) == b'{"a": "[key]", "b": "x[key]y"}'


@pytest.mark.parametrize(
    ("name", "value", "secrets"),
    [
        ("Cookie", 'a=1; session="planted-1"; b=planted=22',
         ['a=1; session="planted-1"; b=planted=22', "planted=22", "planted-1"]),
        ("set-cookie", "s=planted-1; Path=/", ["s=planted-1; Path=/", "planted-1"]),
        ("authorization", "Basic " + b64encode(b"me:planted-pass").decode(), ["bWU6cGxhbnRlZC1wYXNz", "planted-pass"]),
        ("Authorization", "Basic planted-1!", ["planted-1!"]),
        ("helicone-auth", "Bearer planted-1", ["planted-1"]),
        ("x-amz-security-token", "planted-1", ["planted-1"]),
        ("ocp-apim-subscription-key", "planted-1", ["planted-1"]),
        ("x-api-key", "1234567", []),
        ("anthropic-beta", "planted-1", []),
        ("idempotency-key", "planted-1", []),
    ],
)  # fmt: skip
def test_which_headers_hold_secrets(name: str, value: str, secrets: list[str]) -> None:
    assert secrets_in([(name, value)]) == secrets


def test_a_header_that_comes_twice_has_two_secrets() -> None:
    assert secrets_in([("x-api-key", "planted-1"), ("x-api-key", "planted-2")]) == ["planted-1", "planted-2"]


def escaped(data: Any, text: str, levels: int = 1) -> str:
    """Text as a part of a JSON string, each letter plain or escaped; at `levels` 2 that string is in another one."""
    for _ in range(levels):
        text = "".join(data.draw(st.sampled_from(spellings(letter))) for letter in text)
    return text


def spellings(letter: str) -> list[str]:
    units = letter.encode("utf-16-be")
    code = "".join(f"\\u{units[place : place + 2].hex()}" for place in range(0, len(units), 2))
    plain = json.dumps(letter, ensure_ascii=False)[1:-1]
    return [plain, code, code.upper().replace("\\U", "\\u"), *(["\\/"] if letter == "/" else [])]


SECRETS = st.text(st.characters(codec="utf-8", exclude_characters="[]"), min_size=8, max_size=20)
AROUND = st.text(st.sampled_from('ab \\"/\nné😀u0'), max_size=9)


@given(st.data(), SECRETS, AROUND, AROUND)
def test_however_a_key_is_escaped_it_is_removed_and_nothing_else(data: Any, key: str, left: str, right: str) -> None:
    before, after = json.dumps(left)[:-1].encode(), json.dumps(right)[1:].encode()
    body = b'{"a": %b%b%b}' % (before, escaped(data, key).encode(), after)
    assert json.loads(body)["a"] == left + key + right
    clean = without(body, [key])
    assert key not in json.loads(clean)["a"]
    if key not in left + key[:-1] and key not in key[1:] + right and "\\" not in left + key:
        assert clean == b'{"a": %b[key]%b}' % (before, after)


@given(st.data(), SECRETS)
def test_a_key_in_json_inside_json_is_removed(data: Any, key: str) -> None:
    inner = '{"b": "' + escaped(data, key) + '"}'
    clean = without(json.dumps({"a": inner}).encode(), [key])
    assert json.loads(json.loads(clean)["a"]) == {"b": "[key]"}


@given(st.binary(max_size=60))
def test_without_a_secret_nothing_changes(data: bytes) -> None:
    assert without(data, ["planted-key", ""]) == data


def test_what_a_backslash_escapes_before_a_key_stays() -> None:
    """`\\n` and the rest of a key that begins with n: JSON stays JSON."""
    clean = without(b'{"a": "\\nkey-12345"}', ["nkey-12345"])
    assert json.loads(clean) == {"a": "\n[key]"}


TOKEN = "planted-token-1"
SERVER = {"type": "mcp", "server_url": "https://x.example", "authorization": TOKEN, "headers": {"X-Mine": "planted-2"}}


@pytest.mark.parametrize(
    ("body", "clean"),
    [
        ('{"authorization_token":"planted-token-1","a":"planted-token-1"}',
         '{"authorization_token":"[key]","a":"[key]"}'),
        ('{"authorization_token": "e", "messages": 1.0}', '{"authorization_token":"[key]","messages":1.0}'),
        ('{"authorization_token":"planted-token-1","authorization_token":"other-token"}',
         '{"authorization_token":"[key]","authorization_token":"[key]"}'),
        ('{"authorization\\u005ftoken":"planted-token-1"}', '{"authorization\\u005ftoken":"[key]"}'),
        ('{"authorization_token":{"type":"string"},"x":1}', '{"authorization_token":{"type":"string"},"x":1}'),
        ('{"authorization_token":""}', '{"authorization_token":""}'),
        (json.dumps(SERVER), json.dumps({**SERVER, "authorization": "[key]", "headers": {"X-Mine": "[key]"}})),
        ('{"authorization":"plain words","headers":{"a":"plain words"}}',
         '{"authorization":"plain words","headers":{"a":"plain words"}}'),
        ('{"authorization_token":"planted-token-1"', '{"authorization_token":"planted-token-1"'),
    ],
)  # fmt: skip
def test_credentials_for_other_servers(body: str, clean: str) -> None:
    """The last one is not JSON: nothing of it is recorded."""
    assert remove_secrets(body.encode(), secrets_of([], body.encode())).decode() == clean


def test_half_of_a_surrogate_pair_passes() -> None:
    assert redact_text("\ud83d planted-1", ["planted-1"]) == "\ud83d [key]"
