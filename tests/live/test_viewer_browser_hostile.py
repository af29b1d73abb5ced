"""What sessions contain is shown as text: no element, script, dialog or request comes of it, and the policy holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.bill_sessions import SessionWriter
from tests.browser_checks import layout_faults
from tests.browser_pages import Window, opened_window, served
from tests.command_runs import run_here
from tests.viewer_logs import CACHED, MODEL, write_log

from slow_cases import mostly_slow

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MARKS = (
    '<img src=x onerror="alert(1)"><b class="planted">bold</b>',
    "</script></title></style></template><script>alert(2)</script>",
    '<iframe src="https://planted.example/"></iframe><svg onload=alert(3)><a href="javascript:alert(4)">x</a>',
    "\x1b[31mred\x1b[0m \x1b]8;;https://planted.example/\x07link\x1b]8;;\x07",
    "user\u202egnp.exe\u2066 \u200bzero",
    "\U0001f469\u200d\U0001f4bb\U0001f3f3\ufe0f\u200d\U0001f308 e\u0301\u0301\u0301 \u0631\u062d\u0628\u0627",
    "' onmouseover='alert(5) {{7*7}} ${alert(6)} \u2028 <!--",
)
HOSTILE = " ".join(MARKS)
UNSEEN = "\x1b\x07\u202e\u2066\u200b\u2028"
"""Characters that turn, hide or control; the zero-width joiner belongs to the emoji."""
SESSION = f"planted {MARKS[0]}{MARKS[1]}"
PLANTING = """() => new Promise(done => {
    const refused = [];
    const add = (tag, fields) => document.body.append(Object.assign(document.createElement(tag), fields));
    document.addEventListener('securitypolicyviolation', event => {
        refused.push(event.effectiveDirective);
        if (refused.length >= 8) done(refused);
    });
    setTimeout(done, 5_000, refused);
    add('script', {textContent: 'window.planted = 1'});
    add('script', {src: 'https://planted.example/a.js'});
    add('style', {textContent: 'body { display: none }'});
    add('iframe', {src: 'https://planted.example/'});
    add('img', {src: 'https://planted.example/a.png'});
    document.body.setAttribute('style', 'display: none');
    document.body.setAttribute('onclick', 'window.planted = 1');
    document.body.click();
    fetch('https://planted.example/').catch(() => 0);
})"""
"""Plants what the policy must refuse, eight things; the directives that refused them."""
MEGABYTE = "Lorem ipsum dolor sit amet. " * 36_000


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log whose every text is hostile, also its tool's and its session's names; and a transcript likewise."""
    folder = tmp_path_factory.mktemp("hostile")
    write_log(folder / "hostile <b>.jsonl", [_request(number) for number in range(4)], session=SESSION)
    writer = SessionWriter("1e0816ef-0000-4000-8000-000000000001", f"/work/{MARKS[0]}{UNSEEN}")
    writer.write_message(HOSTILE)
    writer.answer(0, 40_000)
    writer.write_message(HOSTILE, after_s=900)
    writer.answer(0, 41_000)
    writer.save(folder / "transcript.jsonl")
    (folder / "broken <img src=x onerror=alert(7)>.jsonl").write_text(f"{{{HOSTILE}")
    return folder


def _request(number: int) -> dict[str, Any]:
    tool = {"name": "planted", "description": HOSTILE * 20, "input_schema": {"type": "object", "title": HOSTILE}}
    used = {"type": "tool_use", "id": "toolu_1", "name": "planted", "input": {MARKS[0]: HOSTILE}}
    words = f"{HOSTILE} {'a' if number < 2 else MARKS[1]}"
    content = [{"type": "text", "text": text} for text in (words, HOSTILE * 40)]
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": f"{number} {HOSTILE}", **CACHED}
    return {
        "model": MODEL,
        "max_tokens": 100,
        "tools": [tool],
        "system": [{"type": "text", "text": f"{HOSTILE * 30} {number // 2} {HOSTILE}", **CACHED}],
        "messages": [
            {"role": "user", "content": content},
            {"role": "assistant", "content": [used]},
            {"role": "user", "content": [result]},
        ],
    }


@pytest.fixture(scope="module")
def base(hostile: Path) -> Iterator[str]:
    with served(hostile) as address:
        yield address


@pytest.fixture
def window(chromium: Browser) -> Iterator[Window]:
    with opened_window(chromium, height=2000) as opened:
        yield opened


def assert_inert(window: Window, base: str) -> None:
    """Nothing came of the content, and nothing in the page is more than text."""
    page = window.page
    assert window.said == []
    assert window.strangers(base) == []
    assert page.locator(".planted, iframe, svg, img, script:not([src]):not([type])").count() == 0
    handlers = "[...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => a.name.startsWith('on')))"
    assert page.evaluate(f"{handlers}.length") == 0
    links = page.evaluate("[...document.links].filter(link => link.checkVisibility()).map(link => link.href)")
    assert [link for link in links if not link.startswith(base)] == []
    text = page.evaluate("document.documentElement.textContent + document.documentElement.outerHTML")
    assert [f"{ord(sign):04x}" for sign in UNSEEN if sign in text] == []


def open_blocks(page: Page) -> None:
    """Every block's whole text, and every call of the table."""
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    page.wait_for_selector(".block-body > :text-is('Loading …')", state="detached")


def test_the_list_of_sessions_is_text(window: Window, base: str) -> None:
    window.go(base)
    page = window.page
    page.wait_for_selector(".sessions .body .line")
    open_blocks(page)
    assert_inert(window, base)
    assert "onerror" in page.inner_text(".skipped")
    page.fill("#search", MARKS[0])
    assert page.locator(".sessions .body .line").count() == 2
    assert layout_faults(page) == []


@pytest.mark.parametrize("width", mostly_slow([390, 1280], 1))
def test_a_call_with_all_its_blocks_is_text(window: Window, base: str, width: int) -> None:
    page = window.page
    page.set_viewport_size({"width": width, "height": 2000})
    window.go(base)
    page.locator("a[title^='planted']").click()
    page.locator(".moment").first.click()
    page.wait_for_selector(".call .blocks")
    open_blocks(page)
    for mark in ("onerror", "</script>", "\\u001b[31mred", "\\u202egnp.exe", "\U0001f469", "\u0631"):
        assert mark in page.inner_text("#main"), mark
    assert_inert(window, base)
    assert layout_faults(page) == []


@pytest.mark.slow
def test_a_transcript_is_text(window: Window, base: str) -> None:
    window.go(f"{base}#/session/1e0816ef-0000-4000-8000-000000000001/call/2")
    window.page.wait_for_selector(".call h2")
    open_blocks(window.page)
    assert_inert(window, base)


def test_a_saved_page_is_text(hostile: Path, window: Window, tmp_path: Path) -> None:
    saved = tmp_path / "saved.html"
    assert run_here("view", hostile / "hostile <b>.jsonl", "--save", saved).returncode == 0
    window.go(saved.as_uri())
    window.page.locator(".moment").first.click()
    window.page.wait_for_selector(".call .blocks")
    open_blocks(window.page)
    window.page.evaluate("document.querySelectorAll('#data, script[type=module]').forEach(each => each.remove())")
    assert_inert(window, saved.as_uri())


def test_the_policy_allows_no_script_or_style_in_the_page(window: Window, base: str) -> None:
    window.go(base)
    page = window.page
    refused = page.evaluate(PLANTING)
    assert set(refused) == {
        "script-src-elem", "script-src-attr", "style-src-elem", "style-src-attr", "frame-src", "img-src", "connect-src",
    }  # fmt: skip
    assert page.evaluate("window.planted") is None
    assert page.evaluate("getComputedStyle(document.body).display") != "none"


@pytest.mark.slow
def test_a_block_of_a_megabyte_is_cut_and_harmless(chromium: Browser, tmp_path: Path) -> None:
    bodies = []
    for number in range(2):
        system = [{"type": "text", "text": f"{number} {MEGABYTE}", **CACHED}]
        messages = [{"role": "user", "content": [{"type": "text", "text": "Go on."}]}]
        bodies.append({"model": "claude-opus-5-5", "max_tokens": 100, "system": system, "messages": messages})
    log = write_log(tmp_path / "large.jsonl", bodies, session="large")
    with served(log) as base, opened_window(chromium) as window:
        window.go(f"{base}#/session/large/call/2")
        page = window.page
        page.wait_for_selector(".difference")
        row = page.locator(".block.change-changed")
        row.locator("summary").click()
        row.locator(".text").wait_for()
        assert "the first 200,000 characters of 1" in row.inner_text()
        row.locator(".fold").click()
        assert 200_000 <= len(row.locator(".text").text_content() or "") <= 200_100
        assert_inert(window, base)
        assert layout_faults(page) == []
