"""Numbers never break from their unit or sign, and nothing else is touched."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.views.bound_units import bind_units, bind_units_in_html, bind_units_in_markdown


@pytest.mark.parametrize(
    ("words", "bound"),
    [
        ("6 min after 3 × 5.8 MB", "6\u00a0min after 3\u00a0× 5.8\u00a0MB"),
        ("41k tokens, 2 days, 8 Jan", "41k\u00a0tokens, 2\u00a0days, 8\u00a0Jan"),
        ("call 6 minimal 4 sessions", "call 6 minimal 4 sessions"),
    ],
)
def test_units(words: str, bound: str) -> None:
    assert bind_units(words) == bound


def test_signs_and_ranges_do_not_wrap_in_html() -> None:
    page = '<p title="6 min">±$0.043, $4.31–38.66 and &lt;$0.01</p><pre>sleep 6 s</pre><title>3 ×</title>'
    bound = bind_units_in_html(page)
    assert re.findall(r'<span class="number">(.*?)</span>', bound) == ["±$0.043", "$4.31–38.66", "&lt;$0.01"]
    assert "<pre>sleep 6 s</pre>" in bound and 'title="6 min"' in bound and "<title>3 ×</title>" in bound


def test_code_and_links_of_markdown_stay() -> None:
    text = "±\\$0.043 in 6 min, `sleep 6 s`\n```sh\nsleep 6 s\n```\n![±\\$3](a–1 s.svg)"
    bound = bind_units_in_markdown(text)
    assert bound.startswith("±\\$0.043 in 6\u00a0min, `sleep 6 s`\n```sh\nsleep 6 s\n```\n")
    assert bound.endswith("](a–1 s.svg)")


@given(st.text(alphabet="<>ab1 ±$–&;minsk.`[]()/\n", max_size=60))
def test_nothing_is_lost(text: str) -> None:
    plain = bind_units_in_markdown(text).replace("\u00a0", " ")
    assert plain == text
    html = bind_units_in_html(text).replace("\u00a0", " ")
    assert re.sub(r'<span class="number">(.*?)</span>', r"\1", html) == text
