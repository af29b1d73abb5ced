"""Keys, tokens and passwords in a text: what excerpts hide, and what they show."""

from __future__ import annotations

import pytest

from cachecost.analysis.lint.volatile import KEYS, excerpt, keys_in

FILL = "a1B2c3D4e5F6g7H8"
SAMPLES = {
    "sk-": "sk-" + FILL,
    "sk-ant-": "sk-ant-" + "abc_DEF-g",
    "k-lf-": "pk-lf-" + FILL,
    "k_live_": "sk_live_" + FILL,
    "k_test_": "rk_test_" + FILL,
    "whsec_": "whsec_" + FILL + "+/=",
    "gh": "gho_" + FILL,
    "github_pat_": "github_pat_" + FILL + "_abc",
    "gl": "glpat-" + FILL,
    "xox": "xoxb-" + "12-34-abcdef",
    "xapp-": "xapp-" + "1-A2-345678",
    "hooks.slack.com/": "hooks.slack.com/services/" + "T0A/B0C/" + FILL,
    "IA": "AKIA" + "ABCDEFGH12345678",
    "AIza": "AIza" + FILL * 2,
    "GOCSPX-": "GOCSPX-" + FILL + "-abc",
    "ya29.": "ya29." + FILL + "_abc",
    "hf_": "hf_" + FILL + "abcd",
    "npm_": "npm_" + FILL + "abcd",
    "pypi-": "pypi-" + FILL * 3,
    "gsk_": "gsk_" + FILL + "abcd",
    "xai-": "xai-" + FILL + "abcd",
    "pplx-": "pplx-" + FILL + "abcd",
    "r8_": "r8_" + FILL + "abcd",
    "tvly-": "tvly-" + FILL,
    "lsv2_": "lsv2_pt_" + FILL + "abcd",
    "lin_api_": "lin_api_" + FILL + "abcd",
    "sbp_": "sbp_" + "a1b2" * 6,
    "dapi": "dapi" + "a1b2" * 8,
    "dop_v1_": "dop_v1_" + "a1b2" * 8,
    "dckr_pat_": "dckr_pat_" + FILL + "abcd",
    "hvs.": "hvs." + FILL + "abcd",
    "SG.": "SG." + FILL + "." + FILL,
    "AGE-SECRET-KEY-1": "AGE-SECRET-KEY-1" + "ABCDE12345" * 2,
    "eyJ": "eyJ" + "hbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxIn0." + "abc-_9",
}
LINE = "MIIEowIBAAKCAQEA" * 4
BEGIN, END = "-----BEGIN RSA " + "PRIVATE KEY-----", "-----END RSA " + "PRIVATE KEY-----"


def hidden(text: str) -> str:
    """The text with KEY for each key; overlapping spans are one."""
    out, end = "", 0
    for start, stop in sorted(keys_in(text)):
        if start >= end:
            out += text[end:start] + "KEY"
        end = max(end, stop)
    return out + text[end:]


@pytest.mark.parametrize("sign", KEYS)
def test_keys_that_show_what_they_are(sign: str) -> None:
    key = SAMPLES[sign]
    assert hidden(f"a {key}, b\\n{key} 密{key}'{key}'") == "a KEY, b\\nKEY 密KEY'KEY'"
    assert hidden(f"no{key} within a word") == f"no{key} within a word"


PLACED = [
    ("curl -H 'Authorization: Bearer abc.def-123'", "curl -H 'Authorization: Bearer KEY'"),
    ('{\\"authorization\\": \\"Basic dXNlcjpwYXNz\\"}', '{\\"authorization\\": \\"Basic KEY\\"}'),
    ("postgres://bob:s3cr3t@db/x", "postgres://bob:KEY@db/x"),
    ("https://abcdef0123456789@host/x", "https://KEY@host/x"),
    ("DB_PASSWORD=hunter2hunter2 next", "DB_PASSWORD=KEY next"),
    ("aws_secret_access_key = abc/DEF+123", "aws_secret_access_key = KEY"),
    ('"password": "correcthorse"', '"password": "KEY"'),
    ('\\"password\\": \\"correcthorse\\"', '\\"password\\": \\"KEY\\"'),
    ('secret: "it`s 1t\'s"', 'secret: "it`s 1t\'s"'),
    ('password: "it`s 1t\'s"', 'password: "KEY"'),
    ("passphrase: 'correct horse battery'", "passphrase: 'KEY'"),
    ("pwd: 12345678", "pwd: KEY"),
    ("api-key: abcd1234", "api-key: KEY"),
    (f"{BEGIN}\n{LINE}\n{LINE[:20]}\nab==\n{END}\nrest", "KEY\nrest"),
    (f'"{BEGIN}\\n{LINE}\\n{END}\\n"', '"KEY\\n"'),
    (f"{BEGIN}\n    12→{LINE}\n    13→{LINE}\n    14→abc", "KEY"),
    (f"{BEGIN}\n{LINE}\nand then he said", "KEY\nand then he said"),
]


@pytest.mark.parametrize(("text", "out"), PLACED)
def test_keys_that_stand_where_keys_belong(text: str, out: str) -> None:
    assert hidden(text) == out


@pytest.mark.parametrize(
    "text",
    [
        "a risk-free task-0123456789abcdef01 of sk-learn-and-all-the-others",
        "bearer authentication and Bearer tokens, a basic understanding",
        "https://user:${PASSWORD}@host http://localhost:8080/a@b",
        'password = "short"; password: string; token = "abcdefghijkl"; secret=$SECRET_NUMBER_1',
        "token=process.env.TOKEN_1 api_key=os.environ['KEY1'] password = get_password(1) max_tokens=12345678",
        '"tokenizer": "claude-3-opus", "tokens": "cl100k_base", token: ${{ secrets.TOKEN1 }}, pwd: /home/user/x1',
        f"look for {BEGIN} in the text",
        "eyJhbGciOiJIUzI1NiJ9 alone is no token",
    ],
)
def test_what_is_no_key_stays(text: str) -> None:
    assert hidden(text) == text


@pytest.mark.parametrize("key", [*SAMPLES.values(), "hunter2hunter2"])
def test_an_excerpt_hides_keys_also_where_it_begins_within_one(key: str) -> None:
    text = f"password={key} and then"
    for at in range(len(text)):
        assert key[-8:] not in excerpt(text, at) and key[:12] not in excerpt(text, at)
