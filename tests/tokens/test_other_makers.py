"""Counting for the models of other makers than Anthropic: what is measured, what is assumed, what cannot be counted."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_token_counters import BLOCKS, IMAGE, PAPER, without_content

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.prompts.blocks import Block
from cachecost.prompts.intake import Intake
from cachecost.prompts.output_format import UNSEEN
from cachecost.prompts.render import CannotCount, Hidden, Renderer, TokenCounter
from cachecost.prompts.request import block_of
from cachecost.providers.rules import HiddenTokens, ModelRules
from cachecost.tokens.calibration import KINDS, LATIN, SCRIPTS, calibration
from cachecost.tokens.factory import make_counter
from cachecost.tokens.images import image_tokens
from cachecost.tokens.tokenizers import count_content
from slow_cases import examples

MEASURED = ("o200k", "gemini", "deepseek", "mistral", "qwen")
ASSUMED = ("grok", "minimax", "open")
MAKERS = MEASURED + ASSUMED


def rules(generation: str) -> ModelRules:
    """Rules of a host that states nothing hidden."""
    return ModelRules(
        host="other",
        model="model-of-the-test",
        generation=generation,
        minimum_tokens=1024,
        keeps_thinking=True,
        accepts_forced_choice=True,
        default_effort=None,
        context_window=200_000,
        collapses_runs=False,
        scope="organization",
    )


@pytest.mark.parametrize("maker", MAKERS)
def test_every_maker_has_ratios_constants_and_a_band(maker: str) -> None:
    found = calibration(maker)
    assert found.confidence == ("measured" if maker in MEASURED else "assumed")
    assert set(found.ratio) == {*KINDS, "schema"}
    assert all(0.9 < found.ratio[kind] < 1.25 for kind in LATIN), "cl100k is a near relative of all of them"
    assert all(0.3 < found.ratio[kind] < 0.8 for kind in SCRIPTS), "but for letters of which it knows few words"
    assert 0.02 < found.error_margin["tiktoken"] < 0.25
    assert found.tool_prompt_head == 0


@pytest.mark.parametrize("maker", MAKERS)
def test_what_stands_around_the_texts(maker: str) -> None:
    """OpenAI's cookbook has 3 tokens and the role for a message, 3 for the answer; Gemini is billed one a message."""
    found = calibration(maker)
    is_gemini = maker == "gemini"
    assert (found.structure["turn"], found.structure.get("end", 0)) == ((1, 0) if is_gemini else (4, 3))
    schema = found.ratio["schema"]
    assert schema == 0 if is_gemini else 0.5 < schema < 0.65, "compact JSON, of a schema indented by 2; or not billed"


def test_what_is_assumed_is_the_middle_of_what_is_measured_and_less_sure() -> None:
    for kind in KINDS:
        told = sorted(calibration(maker).ratio[kind] for maker in MEASURED if (maker, kind) != ("o200k", "tools"))
        assert all(told[0] <= calibration(maker).ratio[kind] <= told[-1] for maker in ASSUMED)
    widest = max(calibration(maker).error_margin["tiktoken"] for maker in MEASURED if maker not in ("o200k", "gemini"))
    assert all(calibration(maker).error_margin["tiktoken"] > widest for maker in ASSUMED)


@pytest.mark.parametrize(
    ("maker", "source"),
    [
        ("o200k", "measured for o200k on 2026-11-22: o200k_base, and bills of models from gpt-4o to gpt-5.4"),
        ("qwen", "measured for qwen on 2026-11-22: the tokenizer of Qwen 3.6; structure assumed"),
        (
            "grok",
            "assumed for grok on 2026-11-22: no tokenizer to be had, as the middle of five other makers; "
            "calls by nine bills",
        ),
        ("open", "assumed for open on 2026-11-22: the model is not known, as the middle of five makers"),
    ],
)
def test_a_source_says_what_was_measured_and_what_is_assumed(maker: str, source: str) -> None:
    told = make_counter("tiktoken", maker).source
    worth, rest = told.split(", ", 1)
    ratios = [calibration(maker).ratio[kind] for kind in LATIN]
    assert worth == f"tiktoken cl100k × {min(ratios):.2f} to {max(ratios):.2f}"
    assert rest == source


SCHEMA = {"type": "object", "properties": {"path": {"type": "string", "description": "A path"}}, "required": ["path"]}
ABOUT = "Read a file of the working tree and return all of its lines, with their numbers, as they are on disk now. " * 2
BODY: dict[str, Any] = {
    "model": "model-of-the-test",
    "tools": [{"name": "read", "description": ABOUT, "input_schema": SCHEMA}],
    "system": [{"type": "text", "text": "You are a careful assistant who answers in one sentence."}],
    "messages": [
        {"role": "user", "content": "Who wrote src/main.rs, and what does it print?"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me look into the file."},
                {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "src/main.rs"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": 'fn main() { println!("{}", 1_200_345); }'},
                {"type": "text", "text": "Mind the number: 1200345."},
            ],
        },
    ],
    "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
}


def lengths(body: dict[str, Any], maker: str) -> tuple[int, int, int]:
    """Of the tools, with the system prompt, of all."""
    prompt = Renderer(make_counter("tiktoken", maker)).render(Intake(keep_content=True).body(body), (), rules(maker))
    return prompt.tools_tokens, prompt.system_tokens, prompt.total_tokens


@pytest.mark.parametrize(
    ("maker", "expected"),
    [
        ("o200k", (56, 98, 174)),
        ("gemini", (69, 82, 149)),
        ("deepseek", (320, 364, 462)),
        ("mistral", (118, 162, 241)),
        ("qwen", (117, 158, 237)),
        ("grok", (118, 161, 249)),
        ("minimax", (118, 161, 240)),
        ("open", (118, 161, 240)),
    ],
)
def test_a_small_mixed_request(maker: str, expected: tuple[int, int, int]) -> None:
    assert lengths(BODY, maker) == expected


def hidden(body: dict[str, Any], maker: str = "o200k", **stated: Any) -> Hidden:
    told = replace(rules(maker), **stated)
    return make_counter("tiktoken", maker).hidden(Intake(keep_content=True).body({**BODY, **body}), told)


PLAIN: dict[str, Any] = {"tools": [], "output_config": {}}
ANSWER = {"role": "assistant", "content": "{"}


@pytest.mark.parametrize(
    ("body", "tools", "tail"),
    [
        (PLAIN, 0, 3),
        ({**PLAIN, "messages": [*BODY["messages"], ANSWER]}, 0, 0),
        ({"output_config": {}}, 10, 3),
        ({"output_config": {}, "tool_choice": {"type": "any"}}, 10, 3),
        ({**PLAIN, "thinking": {"type": "enabled", "budget_tokens": 2000}}, 0, 3),
    ],
)
def test_what_no_block_shows_where_rules_state_nothing(body: dict[str, Any], tools: int, tail: int) -> None:
    assert hidden(body) == Hidden(tools, turn=4, tail=tail, each_message=True)


def test_a_frame_that_a_host_states_wins() -> None:
    assert hidden(PLAIN, hidden=HiddenTokens(frame_const=7, frame_turn=5)) == Hidden(7, turn=5, tail=5)


def test_structured_output_adds_its_schema() -> None:
    """As compact JSON: less than half of what the indented text is to Claude."""
    with_schema, without = hidden({}), hidden({"output_config": {}})
    assert with_schema.system - without.system == round(49 * calibration("o200k").ratio["schema"])
    unseen = {"format": {"type": "json_schema", "schema": f"{UNSEEN}abc", "counts": {"cl100k": 49}}}
    assert hidden({"output_config": unseen}) == with_schema


def test_claudes_frame_is_what_its_rules_state() -> None:
    assert hidden(PLAIN, "claude-4.8") == Hidden(parallel=24)


def told(counter: TokenCounter, block: Block) -> int | str:
    try:
        return counter.block(block)
    except CannotCount as fault:
        return str(fault)


@pytest.mark.parametrize("maker", MAKERS)
def test_a_block_counts_or_fails_the_same_without_its_content(maker: str) -> None:
    counter, bare = make_counter("tiktoken", maker), make_counter("tiktoken", maker)
    for role, content in BLOCKS:
        block = block_of(role, content)
        assert told(bare, without_content(block)) == told(counter, block), content
    assert bare.guessed_kinds == counter.guessed_kinds  # type: ignore[attr-defined]


@settings(max_examples=examples(60), deadline=None)
@given(st.text(max_size=80), st.text(max_size=300), st.sampled_from(MAKERS))
def test_any_definition_counts_the_same_without_its_content(name: str, about: str, maker: str) -> None:
    counter, bare = make_counter("tiktoken", maker), make_counter("tiktoken", maker)
    block = block_of("", {"name": name, "description": about, "input_schema": SCHEMA})
    assert counter.block(block) == bare.block(without_content(block)) > 0


@pytest.mark.parametrize(("words", "tokens"), [(1, 24), (83, 61), (84, 62), (85, 63), (500, 478)])
def test_openai_shows_a_definition_without_its_json(words: int, tokens: int) -> None:
    """A long one is its text less a constant, a short one a share of it."""
    told = calibration("o200k")
    block = block_of("", {"name": "read", "description": "duck " * words, "input_schema": SCHEMA})
    raw = count_content(block)[0]["cl100k"]
    assert make_counter("tiktoken", "o200k").block(block) == round(
        max(raw + told.structure["tool"], raw * told.tool_least)
    )
    assert make_counter("tiktoken", "o200k").block(block) == tokens


@pytest.mark.parametrize(
    ("width", "height", "tiles"),
    [
        (1, 1, 1),
        (200, 100, 1),  # none is scaled up, neither to the square nor to the short side
        (400, 400, 1),
        (512, 512, 1),
        (10_000, 1, 4),  # a side of less than a pixel is one
        (513, 512, 2),
        (513, 513, 4),
        (768, 768, 4),
        (769, 769, 4),
        (1024, 1024, 4),
        (1920, 1080, 6),
        (2048, 768, 8),
        (2049, 768, 8),
        (2048, 4096, 6),
        (4096, 2048, 6),
        (9000, 10, 4),
    ],
)
def test_openais_images_are_tiles(width: int, height: int, tiles: int) -> None:
    assert image_tokens(width, height, "o200k") == 85 + 170 * tiles


def test_openais_images_are_said_to_be_a_guess() -> None:
    counter = make_counter("tiktoken", "o200k")
    counter.block(block_of("user", {"type": "text", "text": "no image"}))
    assert counter.guessed_kinds == ()  # type: ignore[attr-defined]
    assert counter.block(block_of("user", IMAGE)) == 85 + 170 * 6
    assert counter.guessed_kinds == ("image",)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("maker", "content", "message"),
    [
        (
            "gemini",
            IMAGE,
            "1920x1080 image: an image's tokens in Gemini depend on the model and its media_resolution, and no rule "
            "gives them. Leave it out of what is counted, or use --tokens bytes",
        ),
        (
            "grok",
            {"type": "tool_result", "content": [IMAGE]},
            "1920x1080 image: no rule gives an image's tokens in grok. Leave it out of what is counted, "
            "or use --tokens bytes",
        ),
        (
            "o200k",
            PAPER,
            "612x792 page of a PDF: no rule gives its tokens in o200k. Leave it out of what is counted, "
            "or use --tokens bytes",
        ),
        (
            "o200k",
            {"type": "bash_20250124", "name": "bash"},
            "bash_20250124: a tool that Anthropic defines, which o200k has no count for. Define it as a tool of your "
            "own, or use --tokens bytes",
        ),
    ],
)
def test_what_cannot_be_counted_says_what_is_missing(maker: str, content: dict[str, Any], message: str) -> None:
    block = block_of("" if "name" in content else "user", content)
    with pytest.raises(CannotCount) as raised:
        make_counter("tiktoken", maker).block(block)
    assert str(raised.value) == message
    assert make_counter("bytes", maker).block(block) == block.size


@pytest.mark.parametrize(
    ("name", "generation", "message"),
    [
        ("ctok", "o200k", "--tokens ctok cannot count for o200k: ctok has Claude's tokenizers. Use --tokens tiktoken"),
        (
            "count_tokens",
            "gemini",
            "--tokens count_tokens cannot count for gemini: count_tokens is Anthropic's API. Use --tokens tiktoken",
        ),
    ],
)
def test_counters_of_claude_alone(name: str, generation: str, message: str) -> None:
    with pytest.raises(CannotEvaluate) as raised:
        make_counter(name, generation)
    assert str(raised.value) == f"{message}, or bytes"


@pytest.mark.parametrize("name", ["ctok", "tiktoken"])
def test_a_maker_that_nobody_knows(name: str) -> None:
    with pytest.raises(CannotEvaluate, match=r"^tokenizer generation 'gemni' is not calibrated.*mean 'gemini'\?\)$"):
        make_counter(name, "gemni")
