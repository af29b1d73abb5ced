"""The page that is saved as one file, and how its modules are joined."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.live.viewer_client import STATIC, Client
from tests.viewer_logs import requests, source_of, write_log

from cachecost.live.viewer.app import SavedPage, join_modules
from cachecost.live.viewer.sessions_source import SessionsSource

MODULES = {
    "app.js": 'import { b } from "./b.js";\nimport {\n  a,\n  other as unused,\n} from "./a.js";\n\nb(a);\n',
    "b.js": 'import { a } from "./a.js";\nexport function b(x) {\n  return [a, x, "</b><!-- -->"];\n}\n',
    "a.js": "export const a = 1;\nexport const other = 2;\n",
    "not_needed.js": "export const c = 3;\n",
}


def test_modules_are_joined_behind_what_they_import() -> None:
    assert join_modules(MODULES) == (
        'const a = 1;\nconst other = 2;\n\nfunction b(x) {\n  return [a, x, "<\\/b><\\!-- -->"];\n}\n\n\nb(a);\n'
    )


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"a.js": 'import { b } from "./b.js";\nexport const a = b;\n'},
            "each other: app.js → b.js → a.js → b.js",
        ),
        ({"b.js": 'import { x } from "./x.js";\n'}, "b.js imports x.js, which is not there"),
        ({"a.js": 'import x from "./b.js";\n'}, 'a.js: expected imports as { name } from "./x.js"; got import x'),
        ({"a.js": 'import "./b.js";\n'}, 'got import "./b.js";'),
        ({"a.js": 'import { x } from "https://example.org/x.js";\n'}, "example.org"),
    ],
)
def test_other_imports_are_errors(changed: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError) as raised:
        join_modules({**MODULES, **changed})
    assert words in str(raised.value)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> SessionsSource:
    bodies = list(requests(4))
    for body in bodies:
        body["system"][0]["text"] = "</script><script>alert(1)</script><!-- " + body["system"][0]["text"]
    return source_of(write_log(tmp_path_factory.mktemp("logs") / "a.jsonl", bodies, session="s1"))


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_a_page_has_the_answers_of_its_session(source: SessionsSource) -> None:
    page = SavedPage(source, STATIC).of_session("s1")
    data, client = data_of(page), Client(source)
    assert data["home"] == "#/session/s1"
    calls = [f"session/s1/call/{number}" for number in (1, 2, 3, 4)]
    texts = {path for path in data["answers"] if "/block/" in path}
    known = sum(bool(data["answers"][path]["text"]) for path in texts)
    assert set(data["answers"]) - texts == {"start", "session/s1", "session/s1/simulated", *calls}
    for path in ("start", "session/s1/simulated", *calls):
        assert data["answers"][path] == client.get(f"api/{path}").json
    assert data["answers"]["session/s1"]["facts"][-1] == [
        "saved page",
        f"all calls with their blocks; the texts of the {known} blocks of the most expensive moments",
    ]
    assert SavedPage(source, STATIC).of_session("s1") == page


def test_only_its_own_script_and_style_may_run(source: SessionsSource) -> None:
    page = SavedPage(source, STATIC).of_session("s1")
    policy = re.search(r'<meta http-equiv="content-security-policy" content="([^"]*)">', page)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    scripts = re.findall(r"<script\b([^>]*)>(.*?)</script>", page, re.DOTALL)
    assert policy and style
    assert [about for about, _ in scripts] == [' type="application/json" id="data"', ' type="module"']
    assert policy[1] == (
        f"default-src 'none'; script-src '{digest(scripts[1][1])}'; style-src '{digest(style[1])}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    assert page.index("content-security-policy") < page.index("<style>") < page.index("<script")
    assert "src=" not in page and "href=" not in page


def digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def test_hostile_text_ends_no_element(source: SessionsSource) -> None:
    page = SavedPage(source, STATIC).of_session("s1")
    assert page.count("<script") == page.count("</script") == 2
    assert "alert(1)" in page and "<script>alert" not in page and "<!--" not in page


def test_a_long_session_says_what_is_left_out(source: SessionsSource) -> None:
    page = SavedPage(source, STATIC, most_bytes=12_000).of_session("s1")
    answers = data_of(page)["answers"]
    saved = [path for path in answers if "/call/" in path and "/block/" not in path]
    assert 0 < len(saved) < 4
    assert "session/s1/call/3" in saved, "the most expensive moment comes first"
    words = f"{len(saved)} of 4 calls with their blocks: the most expensive moments, then the first"
    assert answers["session/s1"]["facts"][-1][1].startswith(f"{words}; the texts of ")


def test_texts_of_the_moments_and_of_the_selected_call_are_in_it(source: SessionsSource) -> None:
    data, client = data_of(SavedPage(source, STATIC).of_session("s1", 2)), Client(source)
    moments = [one["call"] for one in client.get("api/session/s1").json["moments"]]
    assert data["home"] == "#/session/s1/call/2" and 2 not in moments
    for number in (2, *moments):
        call = data["answers"][f"session/s1/call/{number}"]
        for block in call["blocks"]:
            saved = data["answers"][f"session/s1/call/{number}/block/{block['n']}"]
            served = client.get(f"api/session/s1/call/{number}/block/{block['n']}").json
            assert saved["text"] == served["text"] and saved["before"] is None
            if block["change"] == "changed":
                assert saved["parts"] == served["parts"]


def test_texts_that_have_no_room_are_counted(source: SessionsSource) -> None:
    answers = data_of(SavedPage(source, STATIC, most_text_bytes=20_000).of_session("s1"))["answers"]
    blocks = [path for path in answers if "/block/" in path]
    texts = [path for path in blocks if answers[path]["text"]]
    assert sum(len(json.dumps(answers[path])) for path in blocks) < 21_000
    words = answers["session/s1"]["facts"][-1][1]
    assert re.search(
        f"the texts of {len(texts)} of \\d+ blocks of the most expensive moments, as there is no room", words
    )
    changed = [block for block in answers["session/s1/call/3"]["blocks"] if block["change"] == "changed"]
    assert all(f"session/s1/call/3/block/{block['n']}" in answers for block in changed)


def test_the_page_is_an_attachment(source: SessionsSource) -> None:
    answer = Client(source).get("api/session/s1/page")
    assert answer.headers["content-disposition"] == 'attachment; filename="cachecost-s1.html"'
    assert answer.body.decode() == SavedPage(source, STATIC).of_session("s1")


def test_a_page_without_its_places_is_an_error(source: SessionsSource) -> None:
    with pytest.raises(ValueError, match=r"index\.html: expected"):
        SavedPage(source, {**STATIC, "index.html": b"<html></html>"}).of_session("s1")


def test_a_bill_alone_can_be_saved(tmp_path: Path) -> None:
    path = tmp_path / "bills.jsonl"
    usage = {"input_tokens": 5, "cache_read_input_tokens": 2_000, "output_tokens": 10}
    request = {"model": "claude-opus-4-5", "messages": []}
    path.write_text(json.dumps({"session": "s9", "request": request, "usage": usage}) + "\n")
    answers = data_of(SavedPage(source_of(path), STATIC).of_session("s9"))["answers"]
    assert list(answers) == ["start", "session/s9", "session/s9/call/1"]
