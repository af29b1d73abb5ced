"""Error margins by content kind: what a block counts as, how a prompt's margin comes about, and how often it holds."""

import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from files_of_images import base64, pdf, png, with_pages
from hypothesis import given
from hypothesis import strategies as st

from cachecost.prompts.intake import Intake
from cachecost.prompts.render import Prompt, Renderer
from cachecost.prompts.request import block_of
from cachecost.providers.rules import RuleBook
from cachecost.tokens.factory import make_counter
from cachecost.tokens.margins import DATA, FITTED, KINDS, UNSEEN, Margins, PromptMargins, content_kind, margins_of
from cachecost.tokens.textcounter import TextCounter
from cachecost.tokens.tokenizers import count_content, has_ctok
from tools.calibrate.margins import BilledCount, found_shares, is_fitted, judge_all, judge_by_ctok

RULES = RuleBook().rules("anthropic", "claude-sonnet-4-5")
RECORDINGS = Path(__file__).parents[2] / "scenarios" / "recordings"
IMAGE = {"type": "image", "source": base64(png(280, 280), "image/png")}
BY_URL = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
READ = {"name": "read", "description": "Read a file", "input_schema": {"type": "object"}}
SEARCH = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "text", "text": "found"}]}


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ({"type": "text", "text": "Hello there."}, "text"),
        (READ, "tools"),
        ({"type": "tool_use", "id": "a", "name": "read", "input": {"path": "a"}}, "results"),
        ({"type": "tool_result", "tool_use_id": "a", "content": "text"}, "results"),
        ({"type": "tool_result", "tool_use_id": "a", "content": [IMAGE]}, "image"),
        ({"type": "thinking", "thinking": "Hm.", "signature": "A" * 400}, "thinking"),
        ({"type": "text", "text": "Все люди рождаются свободными и равными"}, "cyrillic"),
        ({"type": "tool_result", "tool_use_id": "a", "content": "すべての人間は自由である: all"}, "cjk"),
        (IMAGE, "image"),
        (BY_URL, "unseen_image"),
        ({"type": "tool_result", "tool_use_id": "a", "content": [BY_URL]}, "unseen_image"),
        ({"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}}, "unseen_pdf"),
        ({"type": "document", "source": {"type": "file", "file_id": "file_1"}}, "unseen_pdf"),
        ({"type": "document", "source": base64(with_pages((612, 792), words="Hi"), "application/pdf")}, "pdf"),
        ({"type": "document", "source": base64(pdf(1, rb"(\001\002) Tj"), "application/pdf")}, "unknown"),
        ({"type": "mcp_tool_use", "id": "m", "name": "look", "server_name": "s", "input": {}}, "mcp"),
        ({"type": "mcp_tool_result", "tool_use_id": "m", "content": "found"}, "mcp"),
        ({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "a"}}, "server"),
        (SEARCH, "server"),
        ({"type": "of_tomorrow", "payload": 1}, "unknown"),
    ],
)
def test_what_a_block_counts_as(content: dict[str, Any], kind: str) -> None:
    block = block_of("user", content)
    assert content_kind(block, *count_content(block)) == kind
    counter = make_counter("tiktoken", "claude-3")
    assert isinstance(counter, TextCounter) and counter.content_kind(block) == kind


def test_a_toolset_stands_for_definitions_that_are_not_there() -> None:
    toolset = block_of("", {"type": "mcp_toolset", "mcp_server_name": "s"})
    assert content_kind(toolset, *count_content(toolset)) == "mcp"


def prompt_of(body: dict[str, Any], counter: TextCounter) -> Prompt:
    request = Intake(keep_content=True).body({"model": "claude-sonnet-4-5", "max_tokens": 9, **body})
    return Renderer(counter).render(request, (), RULES)


def counter_with(margins: Margins) -> TextCounter:
    counter = make_counter("tiktoken", "claude-3")
    assert isinstance(counter, TextCounter)
    counter.margins = margins
    return counter


def only(**kinds: float) -> dict[str, float]:
    return {**dict.fromkeys(KINDS, 0.0), **kinds}


WORDS = "How many roads must a man walk down before you call him a man? " * 20
BODY: dict[str, Any] = {"tools": [READ], "messages": [{"role": "user", "content": [{"type": "text", "text": WORDS}]}]}
SCHEMA = {"format": {"type": "json_schema", "schema": {"type": "object", "properties": {"a": {"type": "string"}}}}}


def test_a_prompt_has_the_margins_of_its_kinds_by_their_tokens() -> None:
    """Of 313 words, their frame of 3 and the definition; hidden tokens are published, so they have none."""
    counter = counter_with(Margins(5.0, only(text=0.1, tools=0.2)))
    prompt = prompt_of(BODY, counter)
    words, tool = prompt.end.tokens - prompt.head.tokens, counter.block(block_of("", READ))
    expected = (5.0 + 0.1 * words + 0.2 * tool) / prompt.total_tokens
    assert PromptMargins(counter).of([prompt]) == pytest.approx(expected)
    assert PromptMargins(counter).of([prompt, prompt]) == pytest.approx(expected)


def test_structured_output_has_a_margin_of_its_own() -> None:
    counter = counter_with(Margins(0.0, only(format=0.5)))
    plain, asked = prompt_of(BODY, counter), prompt_of({**BODY, "output_config": SCHEMA}, counter)
    more = asked.total_tokens - plain.total_tokens
    assert asked.format_tokens == more > 80
    assert PromptMargins(counter).of([plain]) == 0.0
    assert PromptMargins(counter).of([asked]) == pytest.approx(0.5 * more / asked.total_tokens)


@given(st.lists(st.sampled_from([WORDS, "short", "x" * 300]), min_size=1, max_size=6))
def test_the_order_in_which_prompts_are_asked_for_does_not_matter(texts: list[str]) -> None:
    counter = counter_with(Margins(2.0, only(text=0.1)))
    renderer, intake = Renderer(counter), Intake(keep_content=True)
    messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]
    prompts = [
        renderer.render(intake.body({"model": "m", "max_tokens": 1, "messages": messages[:end]}), (), RULES)
        for end in range(1, len(messages) + 1)
    ]
    forwards, backwards = PromptMargins(counter), PromptMargins(counter)
    told = [forwards.of([one]) for one in prompts]
    assert [backwards.of([one]) for one in reversed(prompts)] == told[::-1]


@pytest.mark.parametrize("counter", ["bytes", "tiktoken"])
def test_without_margins_of_its_own_the_general_one_holds(counter: str) -> None:
    made = make_counter(counter, "qwen")
    request = Intake(keep_content=True).body({"model": "m", "max_tokens": 1, "messages": BODY["messages"]})
    prompt = Renderer(made).render(request, (), RuleBook().rules("qwen", "qwen3-max"))
    blocks = prompt.end.tokens - prompt.head.tokens
    assert PromptMargins(made).of([prompt]) == pytest.approx(made.error_margin * blocks / prompt.total_tokens)


def test_every_calibrated_generation_has_all_kinds() -> None:
    data = tomllib.loads(files("cachecost.tokens").joinpath(DATA).read_text(encoding="utf-8"))["margins"]
    assert set(data) == {"claude-3", "claude-4.7", "claude-4.8", "o200k"}
    for generation, rows in data.items():
        for counter, row in rows.items():
            assert list(row) == ["base", *FITTED, "thin"], (generation, counter)
            assert all(0 <= row[kind] < 1 for kind in FITTED if kind not in ("mcp", *row["thin"]))
            assert set(row["thin"]) <= set(FITTED)
            assert margins_of(generation, counter, 9.0).kinds["text"] == row["text"]
    assert margins_of("qwen", "tiktoken", 0.25).kinds["tools"] == 0.25


@pytest.mark.parametrize(
    ("source", "least", "most"),
    [
        ({"type": "image", "source": BY_URL["source"]}, 41, 298),
        ({"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}}, 1534, 19_400),
    ],
)
def test_what_only_a_url_names_is_a_range_that_holds_what_was_billed(
    source: dict[str, Any], least: int, most: int
) -> None:
    """The shortest and longest that were recorded; counted for images is the middle, for PDFs the least."""
    made = make_counter("tiktoken", "claude-3")
    assert isinstance(made, TextCounter)
    block = block_of("user", source)
    tokens, margin = made.block(block), made.block_margin(block)
    assert tokens * (1 - margin) <= least < most <= tokens * (1 + margin)
    assert set(UNSEEN) <= set(Margins.uniform(0.1).kinds)


def test_the_text_of_a_pdf_is_never_taken_to_be_exact() -> None:
    """One word is all that the fitted ones draw; a page of text was 1.1% off."""
    assert all(margins_of(one, "ctok", 0.0).kinds["pdf"] >= 0.011 for one in ("claude-3", "claude-4.7", "claude-4.8"))


@cache
def unseen_calls(counter: str) -> tuple[BilledCount, ...]:
    """Of the committed recordings the calls that no fit has seen, of unseen sources and in held-out files; for tiktoken
    their words, too, with the counts of ctok for a bill."""
    calls = judge_all((RECORDINGS / "traffic").rglob("*.jsonl"), counter)
    calls += judge_by_ctok(RECORDINGS.rglob("*.jsonl")) if counter == "tiktoken" else []
    return tuple(one for one in calls if not is_fitted(one))


@pytest.mark.skipif(not has_ctok(), reason="ctok is not installed")
@pytest.mark.parametrize(
    ("counter", "generation", "kind", "sources"),
    [
        ("ctok", "claude-3", "", 9),
        ("ctok", "claude-3", "text", 6),
        ("ctok", "claude-3", "tools", 3),
        ("ctok", "claude-4.8", "", 2),
        ("tiktoken", "claude-3", "", 9),
        ("tiktoken", "claude-3", "text", 9),
        ("tiktoken", "claude-3", "tools", 4),
        ("tiktoken", "claude-3", "results", 4),
        ("tiktoken", "claude-4.7", "text", 9),
        ("tiktoken", "claude-4.8", "", 9),
        ("tiktoken", "claude-4.8", "text", 9),
        ("tiktoken", "claude-4.8", "tools", 4),
        ("tiktoken", "claude-4.8", "results", 4),
        ("tiktoken", "o200k", "", 4),
    ],
)
def test_the_stated_share_of_unseen_calls_is_within_the_margin(
    counter: str, generation: str, kind: str, sources: int
) -> None:
    """Nine of ten, each source counting once: the calls of one are alike. Fewer than ten sources show no smaller share
    than that of one, so that one of them may fail."""
    calls = [one for one in unseen_calls(counter) if one.generation == generation and kind in ("", one.main_kind)]
    shares = found_shares(calls, margins_of(generation, counter, 0.0))
    assert len(shares) >= sources, shares
    assert sum(shares.values()) >= 9 * len(shares) // 10, shares
