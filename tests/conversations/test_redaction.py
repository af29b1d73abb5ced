"""Redaction: no planted secret is written, and what the simulator sees stays as it was."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from random_logs import lines, logs
from shapes import blocks_of, event_shapes, pattern

from cachecost.conversations import call_recording, recording
from cachecost.conversations.block_table import BlockWriter
from cachecost.conversations.call_recording import Title
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.content_free import ContentFree
from cachecost.conversations.model import Conversation, Human, Inquiry, Reply, Results, ThreadRewrite
from cachecost.conversations.readers.call_recording import reader as calls
from cachecost.conversations.readers.request_log import reader as request_log
from cachecost.conversations.redaction.keys import KEYS
from cachecost.conversations.redaction.names import Names
from cachecost.conversations.redaction.redactor import Redactor
from cachecost.conversations.redaction.text import SecretHider
from cachecost.prompts.blocks import Block, Part
from cachecost.prompts.wire import block_of, text_block
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup
from cachecost.views.replay.call_rows import call_object

RULES, PRICES = RuleBook(), PriceBook.load()
TOKEN = "gh" + "p_" + "a1B2" * 9
"""Never whole in this file: what scans repositories for keys would find it."""


def read(folder: Path, rows: list[dict[str, Any]]) -> list[RecordedCall]:
    path = folder / "log.jsonl"
    path.write_bytes(lines(rows))
    return list(request_log.calls(path))


def redacted(told: list[RecordedCall]) -> list[RecordedCall]:
    redactor = Redactor()
    for call in told:
        redactor.learn(call)
    return [redactor.call(call) for call in told]


def written(told: Iterable[RecordedCall]) -> str:
    stream = BytesIO()
    call_recording.write(Title("n"), told, stream)
    return json.dumps([json.loads(line) for line in stream.getvalue().splitlines()], ensure_ascii=False)


def row(*texts: str, **fields: Any) -> dict[str, Any]:
    messages = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    return {"request": {"model": "claude-opus-4-6", "messages": messages}, **fields}


# --------------------------------------------------------------------------------- whole recordings

PLANTED = {
    "zebra": "Zora Quillfeather <zquill@firm.io> at /Users/zorathe/src",
    "quagga": "zorathe",
    "okapi": TOKEN,
    "tapir": "token=hunter2hunter2",
}
GONE = ("Quillfeather", "zquill", "firm.io", TOKEN, "hunter2")


def replayed(told: list[RecordedCall]) -> list[str]:
    simulation = Simulation(ReplaySetup(RULES, PRICES, tokens="bytes"))
    return [json.dumps(call_object(row)) for row in simulation.rows(told)]


def all_blocks(call: RecordedCall) -> list[Block]:
    sent = [block for message in call.request.thread.messages() for block in message.blocks]
    return [*call.request.tools.blocks, *call.request.system.blocks, *sent, *call.response]


def breakpoints(call: RecordedCall) -> list[Any]:
    return [
        (breakpoint.layer, breakpoint.index, breakpoint.ttl, breakpoint.node and breakpoint.node.length)
        for breakpoint in call.request.breakpoints
    ]


def nodes(told: list[RecordedCall]) -> list[Any]:
    """Which calls share which nodes, by the first place of each."""
    all_nodes = [node for call in told for node in call.request.thread.back()]
    first: dict[int, int] = {}
    return [first.setdefault(id(node), place) for place, node in enumerate(all_nodes)]


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(logs())
def test_no_planted_secret_is_written_and_it_replays_as_before(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    text = json.dumps(rows)
    for word, secret in PLANTED.items():
        text = text.replace(word, secret)
    was = read(tmp_path, json.loads(text))
    now = redacted(was)
    out = written(now)
    assert not [secret for secret in GONE if secret in out]
    if "/Users/zorathe" in written(was):  # where nothing says that it is a name, it is a word
        assert "zorathe" not in out
    blocks, before = ([block for call in told for block in all_blocks(call)] for told in (now, was))
    assert [(block.kind, block.role, block.size) for block in blocks] == [
        (block.kind, block.role, block.size) for block in before
    ]
    assert pattern([block.digest for block in blocks]) == pattern([block.digest for block in before])
    assert list(map(breakpoints, now)) == list(map(breakpoints, was)) and nodes(now) == nodes(was)
    assert all(
        breakpoint.node in [None, *call.request.thread.back()]
        for call in now
        for breakpoint in call.request.breakpoints
    )
    assert replayed(now) == replayed(was)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(logs())
def test_without_secrets_nothing_changes(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    was = read(tmp_path, rows)
    assert written(redacted(was)) == written(was)


def test_a_name_found_late_is_gone_from_what_was_said_before(tmp_path: Path) -> None:
    was = read(tmp_path, [row("Ask Tamsin."), row("Ask Tamsin.", "Who?", "Author: Tamsin Vree <tv@firm.io>")])
    first, second = redacted(was)
    assert "Tamsin" in written(was) and "Tamsin" not in written([first, second])
    assert second.request.thread.parent is not None
    assert second.request.thread.parent.parent is first.request.thread


def test_learning_after_the_first_redaction_is_refused(tmp_path: Path) -> None:
    (call,) = read(tmp_path, [row("hi")])
    redactor = Redactor()
    redactor.call(call)
    with pytest.raises(RuntimeError, match="learn everything before the first redaction"):
        redactor.learn(call)


def test_what_was_hidden_is_counted_once_a_block(tmp_path: Path) -> None:
    text = f"Tamsin Vree <tv@firm.io> {TOKEN} /home/tams/x {TOKEN}"
    said = {"response": {"content": "for tams"}, "session": "of tams"}
    told = read(tmp_path, [row(text, **said), row(text, "for tams", **said)])
    redactor = Redactor()
    for call in told:
        redactor.learn(call)
    for call in told:
        redactor.call(call)
    assert redactor.counts == {"names": 4, "e-mail addresses": 1, "keys": 2}
    assert redactor.call(told[0]).session == "of n002"


def test_workspace_session_parameters_and_refusals_are_read_too(tmp_path: Path) -> None:
    tool = {"name": "ask_tamsin", "input_schema": {}, "defer_loading": True, "cache_control": {"type": "ephemeral"}}
    one = row("hi", workspace="/home/tamsin", session="tamsin 1")
    one["request"] |= {"tools": [tool], "output_config": {"effort": "high", "format": {"schema": {"a": "by Tamsin"}}}}
    (call,) = redacted(read(tmp_path, [one]))
    assert call.request.params == {"output_config": {"effort": "high", "format": {"schema": {"a": "by NAME1x"}}}}
    assert call.request.fault is not None and call.request.fault.startswith("Tool 'ask_NAME2x' cannot")
    assert (call.workspace, call.session) == ("/home/NAME2x", "NAME2x 1")


def test_a_recording_without_content_passes_as_it_is(tmp_path: Path) -> None:
    told = read(tmp_path, [row("of tamsin in /home/tamsin")])
    path = tmp_path / "digest.jsonl"
    call_recording.write(Title("n"), told, path, BlockWriter(ContentFree(b"key")))
    was = list(calls.calls(path))
    assert written(redacted(was)) == written(was)


def test_a_block_that_brings_a_tool_in_does_not_keep_its_digest(tmp_path: Path) -> None:
    def calling(description: str) -> dict[str, Any]:
        tool = {"name": "find", "description": description, "input_schema": {}, "defer_loading": True}
        content = [{"type": "tool_reference", "tool_name": "find"}, {"type": "text", "text": "of /home/tamsin/x"}]
        result = {"type": "tool_result", "tool_use_id": "t", "content": content}
        return {"request": {"model": "m", "tools": [tool], "messages": [{"role": "user", "content": [result]}]}}

    was = [all_blocks(call)[0].digest for call in read(tmp_path, [calling(d) for d in "aba"])]
    now = [all_blocks(call)[0].digest for call in redacted(read(tmp_path, [calling(d) for d in "aba"]))]
    assert pattern(now) == pattern(was) == [0, 1, 0] and not {*now} & {*was}


# ------------------------------------------------------------------------------------ conversations


def test_conversations_are_redacted_everywhere_but_in_what_others_gave_them() -> None:
    secret = "Tamsin Vree <tv@firm.io>"
    use = block_of("assistant", {"type": "tool_use", "id": "t", "name": "x", "input": {"/home/tamsin": [secret]}})
    result = block_of("user", {"type": "tool_result", "tool_use_id": "t", "content": secret})
    was = Conversation(
        "with Tamsin",
        (
            Human(1.0, (text_block("user", "Tamsin?"),)),
            Reply(2.0, (use,), 0.5, 7),
            Inquiry(3.0, text_block("user", secret), text_block("assistant", "Tamsin"), "ask tamsin", "Tamsin"),
            Results(4.0, (result,)),
        ),
        "claude-opus-4-6",
        Part((block_of("", {"name": "x", "description": secret, "input_schema": {}}),)),
        Part((text_block("system", secret),)),
        "where Tamsin keeps it",
        "MIT, Tamsin Vree",
        {"container": "tamsin"},
    )
    redactor = Redactor()
    redactor.learn(was)
    now = redactor.conversation(was)
    stream = BytesIO()
    recording.write(replace(now, source="", licence=""), stream)
    assert not [word for word in (b"amsin", b"Vree", b"firm") if word in stream.getvalue()]
    assert (now.source, now.licence) == (was.source, was.licence)
    assert event_shapes(now) == event_shapes(was)
    for before, after in zip(blocks_of(was), blocks_of(now), strict=True):
        assert (before.kind, before.role, before.size) == (after.kind, after.role, after.size)


def test_a_conversation_found_in_calls_is_refused() -> None:
    with pytest.raises(ValueError, match="rewrite its calls"):
        Redactor().conversation(Conversation("n", (ThreadRewrite(0.0, 0, (), "start"),)))


# --------------------------------------------------------------------------------------------- keys

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


def hidden(text: str, *learned: str) -> str:
    """The text without secrets; all placeholders shortened to KEY1, MAIL2 …"""
    names = Names()
    for told in (text, *learned):
        names.learn(told)
    hider = SecretHider(names)
    out = hider.text(text)
    assert len(json.dumps(out, ensure_ascii=False)) == len(json.dumps(text, ensure_ascii=False)) or not text.isascii()
    for made in hider._placeholders.values():
        out = out.replace(made, made.partition("-")[0].rstrip("x"))
    return out


@pytest.mark.parametrize("sign", KEYS)
def test_keys_that_show_what_they_are(sign: str) -> None:
    key = SAMPLES[sign]
    assert hidden(f"a {key}, b\\n{key} 密{key}'{key}'") == "a KEY1, b\\nKEY1 密KEY1'KEY1'"
    assert hidden(f"no{key} within a word") == f"no{key} within a word"


PLACED = [
    ("curl -H 'Authorization: Bearer abc.def-123'", "curl -H 'Authorization: Bearer KEY1'"),
    ('{\\"authorization\\": \\"Basic dXNlcjpwYXNz\\"}', '{\\"authorization\\": \\"Basic KEY1\\"}'),
    ("postgres://bob:s3cr3t@db/x", "postgres://bob:KEY1@db/x"),
    ("https://abcdef0123456789@host/x", "https://KEY1@host/x"),
    ("DB_PASSWORD=hunter2hunter2 next", "DB_PASSWORD=KEY1 next"),
    ("aws_secret_access_key = abc/DEF+123", "aws_secret_access_key = KEY1"),
    ('"password": "correcthorse"', '"password": "KEY1"'),
    ('\\"password\\": \\"correcthorse\\"', '\\"password\\": \\"KEY1\\"'),
    ('secret: "it`s 1t\'s"', 'secret: "it`s 1t\'s"'),
    ('password: "it`s 1t\'s"', 'password: "KEY1"'),
    ("passphrase: 'correct horse battery'", "passphrase: 'KEY1'"),
    ("pwd: 12345678", "pwd: KEY1"),
    ("api-key: abcd1234", "api-key: KEY1"),
    (f"{BEGIN}\n{LINE}\n{LINE[:20]}\nab==\n{END}\nrest", "KEY1\nrest"),
    (f'"{BEGIN}\\n{LINE}\\n{END}\\n"', '"KEY1\\n"'),
    (f"{BEGIN}\n    12→{LINE}\n    13→{LINE}\n    14→abc", "KEY1"),
    (f"{BEGIN}\n{LINE}\nand then he said", "KEY1\nand then he said"),
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


def test_a_secret_of_an_object_is_known_by_its_key() -> None:
    use = {
        "type": "tool_use",
        "id": "t",
        "name": "x",
        "input": {"db": {"password": "correcthorse", "note": "correcthorse"}},
    }
    now = SecretHider(Names()).value(use)
    assert now["input"]["db"]["note"] == "correcthorse" and now["input"]["db"]["password"].startswith("KEY1-")
    assert len(now["input"]["db"]["password"]) == len("correcthorse")


# ------------------------------------------------------------------------------- addresses and names


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ("to a.b+c@firm.co.uk, or", "to MAIL1, or"),
        ("x\\na_b@firm.io", "x\\nMAIL1"),
        ("\\u003cab@firm.io\\u003e %3Cab%40firm.io%3E", "\\u003cMAIL1\\u003e %3CMAIL2%3E"),
        ("mailto:ä@bücher.de", "mailto:MAIL1"),
        ("12+abcd@users.noreply.github.com", "MAIL1"),
        ("git@github.com:a/b noreply@firm.io ab@example.com ab@x.test", None),
        ("icon@2x.png react@18.2.0 @decorator a@b ab@localhost", None),
    ],
)
def test_e_mail_addresses(text: str, out: str | None) -> None:
    assert hidden(text) == (text if out is None else out)


@pytest.mark.parametrize(
    ("learned", "text", "out"),
    [
        ("/home/tamsin/x", "Tamsin, TAMSIN_1 tamsin's \\ntamsin tamsins", "NAME1, NAME2_1 NAME3's \\nNAME3 tamsins"),
        ("C:\\\\Users\\\\tams.vree\\\\x", "tams.vree Tams Vree tamsvree tams", "NAME1 NAME2 NAME3 tams"),
        ("C:\\Users\\Tams Vree\\x", "C:\\Users\\Tams Vree\\y: tams-vree", "C:\\Users\\NAME1\\y: NAME2"),
        ("-Users-tamsin-src", "-home-tamsin-src", "-home-NAME1-src"),
        ("tamsin@mac:~/src$", "tamsin", "NAME1"),
        ("Tams de la Vree <x@firm.io>", "Tams de la Vree, Tams, Vree, la", "NAME1, n002, n003, la"),
        ('"Vree, Tams" <x@firm.io>', "Vree Tams", "NAME1"),
        ("please write to Vree <x@firm.io>", "please write to Vree", "please write to n001"),
        ("Author: Tams Vree\n", "tams vree", "NAME1"),
        ("^1a2b (Tams Vree 2024-01-02 10:00:00 +0100 1)", "Tams Vree", "NAME1"),
        ("git config user.name 'Tams Vree'", "Tams Vree", "NAME1"),
        ("t.vree@firm.io", "t.vree T Vree tvree vree", "NAME1 NAME2 tvree vree"),
        ("<王小明> 王小明 <wang@firm.cn>", "用户王小明说", "用户NAME1说"),
        ("/home/max/x", "/home/max/y max(1, 2)", "/home/n01/y max(1, 2)"),
    ],
)  # fmt: skip
def test_names_are_found_wherever_they_stand(learned: str, text: str, out: str) -> None:
    names = Names()
    names.learn(learned)
    hider = SecretHider(names)
    now = hider.text(text)
    for made in hider._placeholders.values():
        now = now.replace(made, made.rstrip("x"))
    assert now == out


@pytest.mark.parametrize(
    "text",
    [
        "/home/runner/work /home/user/x /Users/Shared /home/ubuntu C:\\Users\\Public\\x user runner",
        "import '../home/index' https://firm.io/home/dashboard/x dashboard index take-home-pay",
        "Co-Authored-By: Claude <noreply@anthropic.com> Claude",
        "Author: the team, (see 2024-01-02 10:00) user.name = x",
    ],
)
def test_what_is_nobodys_name_stays(text: str) -> None:
    assert hidden(text) == text


def test_a_folder_within_a_path_is_hidden_there_but_teaches_no_name() -> None:
    assert hidden("see app/home/carousel/x and the carousel") == "see app/home/NAME1/x and the carousel"


def test_role_mailboxes_teach_no_names() -> None:
    assert hidden("support@firm.io: ask support, Data Team <data@firm.io>, data") == (
        "MAIL1: ask support, Data Team <MAIL2>, data"
    )


# ------------------------------------------------------------------------- payloads and placeholders


def test_payloads_types_and_keys_of_objects_stay() -> None:
    names = Names()
    names.learn("/home/tamsin/x")
    data = "ab/tamsin/cd+tamsin="
    content = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
        {"type": "thinking", "thinking": "tamsin", "signature": data, "tamsin": 1},
        {"type": "redacted_thinking", "data": data},
        {"type": "search", "encrypted_content": data, "url": f"data:image/png;base64,{data}"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "tamsin"}},
    ]
    now = SecretHider(names).value(content)
    assert now == json.loads(json.dumps(content).replace('"tamsin"}', '"NAME1x"}').replace(': "tamsin"', ': "NAME1x"'))


def test_keys_of_tool_inputs_do_not_stay() -> None:
    names = Names()
    names.learn("/home/tamsin/x")
    now = SecretHider(names).value({"type": "tool_use", "name": "x", "input": {"/home/tamsin": {"type": "a@firm.io"}}})
    assert now["input"] == {"/home/NAME1x": {"type": "MAIL1xxxx"}}


def test_placeholders_are_as_long_as_secrets_and_never_the_same() -> None:
    hider = SecretHider(Names())
    users = [f"/home/{chr(97 + n % 26)}{chr(97 + n // 26)}q" for n in range(600)]
    now = [hider.text(user) for user in users]
    assert len(set(now)) == 600 and {len(text) for text in now} == {9}
    assert hider.text(users[0]) == now[0]
    two = [hider.text(f"/home/{chr(97 + n)}q")[6:] for n in range(26)] + [hider.text("/home/ä")[6:]]
    assert len(set(two)) == 27 and two[-1] == two[0][0] + two[-1][1:]


def test_overlapping_secrets_are_one_of_the_graver_kind() -> None:
    hider = SecretHider(Names())
    assert hider.text("https://bob:pass1word@firm.io/x").startswith("https://bob:KEY1-")
    assert hider.counts == {"keys": 1}
