"""What is counted of images, documents and search results: texts, and facts with their tokens."""

from datetime import date
from typing import Any

import pytest
from files_of_images import base64, gif, jpeg, pdf, png, webp

from cachecost.prompts.intake import Intake
from cachecost.prompts.render import Renderer
from cachecost.prompts.request import block_of
from cachecost.providers.rules import RuleBook
from cachecost.tokens.calibration import Calibration, calibration
from cachecost.tokens.factory import make_counter
from cachecost.tokens.parts import BlockParts, constant_of, parts_of, size_tokens
from cachecost.tokens.textcounter import TextCounter
from cachecost.tokens.tokenizers import Cl100k

PNG = {"type": "image", "source": base64(png(330, 291), "image/png")}
CITED = {"citations": {"enabled": True}}


def document(source: dict[str, Any], **more: Any) -> BlockParts:
    return parts_of("document", {"type": "document", "source": source, **more})


def text(data: str) -> dict[str, Any]:
    return {"type": "text", "media_type": "text/plain", "data": data}


@pytest.mark.parametrize(
    "source",
    [
        base64(png(330, 291), "image/png"),
        base64(jpeg(330, 291), "image/jpeg"),
        base64(gif(330, 291), "image/gif"),
        base64(webp(330, 291), "image/webp"),
        base64(gif(330, 291), "image/png"),
    ],
)
def test_an_image_is_its_pixels(source: dict[str, Any]) -> None:
    assert parts_of("image", {"type": "image", "source": source}) == BlockParts((), {"330x291 image": 1})


@pytest.mark.parametrize(
    "source",
    [
        {"type": "url", "url": "https://example.org/a.png"},
        {"type": "file", "file_id": "file_1"},
        {"type": "base64", "media_type": "image/png", "data": "QUJD"},
        {"type": "base64", "media_type": "image/png", "data": None},
        "not an object",
        None,
    ],
)
def test_an_image_without_a_size_is_a_stated_guess(source: object) -> None:
    assert parts_of("image", {"type": "image", "source": source}) == BlockParts((), {"364x364 image": 1, "guessed": 1})


@pytest.mark.parametrize(
    ("parts", "texts", "facts"),
    [
        (document(text("Ab. Cd.")), ("Ab. Cd.",), {"document": 1}),
        (document(text("Ab."), title="T", context="C"), ("T", "C", "Ab."), {"document": 1}),
        (document(text("Ab."), title=None, context=""), ("Ab.",), {"document": 1}),
        (document(text("Ab."), citations={"enabled": False}), ("Ab.",), {"document": 1}),
        (document(text("Ab. Cd."), **CITED), ("Ab. Cd.",), {"document": 1, "sentence": 2}),
        (document(text("Ab! Cd? Ef…\nGh"), **CITED), ("Ab! Cd? Ef…\nGh",), {"document": 1, "sentence": 4}),
        (document(text("1.5 a.b"), **CITED), ("1.5 a.b",), {"document": 1, "sentence": 1}),
        (document(text("一。二。"), **CITED), ("一。二。",), {"document": 1, "sentence": 2}),
        (document(text(""), **CITED), ("",), {"document": 1}),
        (document({"type": "content", "content": "Ab."}), ("Ab.",), {"document": 1}),
        (
            document({"type": "content", "content": [{"type": "text", "text": "Ab."}, PNG]}),
            ("Ab.",),
            {"330x291 image": 1, "document": 1},
        ),
        (
            document(base64(pdf(2, b"(" + b"x" * 151 + b") Tj"), "application/pdf")),
            (),
            {"612x792 page": 2, "unseen": 151, "document": 1},
        ),
        (
            document(base64(pdf(2, b"<" + b"0078" * 151 + b"> Tj"), "application/pdf"), **CITED),
            (),
            {"612x792 page": 2, "unseen": 151, "document": 1, "sentence": 2},
        ),
        (document(base64(pdf(1, b""), "application/pdf")), (), {"612x792 page": 1, "document": 1}),
        (
            document(base64(pdf(2, b"") + b"/Encrypt", "application/pdf")),
            (),
            {"612x792 page": 2, "unseen": 5000, "guessed": 1, "document": 1},
        ),
    ],
)
def test_a_document_is_its_text_or_its_pages(parts: BlockParts, texts: tuple[str, ...], facts: dict[str, int]) -> None:
    assert parts == BlockParts(texts, facts)


@pytest.mark.parametrize(
    "source", [{"type": "url", "url": "u"}, {"type": "file", "file_id": "f"}, base64(b"?", "application/pdf")]
)
def test_a_pdf_that_cannot_be_read_is_the_least_there_is(source: dict[str, Any]) -> None:
    assert document(source) == BlockParts((), {"612x792 page": 1, "unseen": 2500, "guessed": 1, "document": 1})


def test_a_search_result_is_its_source_title_and_text() -> None:
    found = {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "Ab. Cd."}]}
    assert parts_of("search_result", found) == BlockParts(("s", "t", "Ab. Cd."), {"guessed": 1, "document": 1})
    assert parts_of("search_result", {**found, **CITED}).facts == {"guessed": 1, "document": 1, "sentence": 2}


def test_a_result_adds_up_what_is_in_it() -> None:
    inner = [PNG, {"type": "text", "text": "a"}, PNG, {"type": "image", "source": None}]
    result = {"type": "tool_result", "content": inner, "is_error": True}
    assert parts_of("tool_result", result) == BlockParts(
        ("a",), {"330x291 image": 2, "364x364 image": 1, "guessed": 1, "error": 1}
    )


OF_THE_TEST = Calibration(
    "claude-4.8",
    ratio={"text": 2.0},
    structure={"image": 100_000, "page": 1_000_000, "document": 10_000_000, "unseen": 0.5},
    tool_prompt_head=0,
    error_margin={"tiktoken": 0.1},
    fitted=date(2026, 11, 21),
)


@pytest.mark.parametrize(
    ("content", "tokens"),
    [
        (PNG, 132 + 100_000),
        ({"type": "image", "source": base64(png(1920, 1080), "image/png")}, 2691 + 100_000),
        ({"type": "document", "source": text("hello world")}, 2 * 2.0 + 10_000_000),
        (
            {"type": "document", "source": base64(pdf(3, b"<" + b"0078" * 40 + b"> Tj"), "application/pdf")},
            3 * (1496 + 1_000_000) + 40 * 0.5 + 10_000_000,
        ),
    ],
)
def test_a_size_counts_by_formula_and_what_stands_around_by_a_constant(content: dict[str, Any], tokens: float) -> None:
    counter = TextCounter("tiktoken", "", OF_THE_TEST, Cl100k(), OF_THE_TEST.ratio)
    assert counter.block(block_of("user", content)) == round(tokens)


@pytest.mark.parametrize(
    ("fact", "constant", "tokens"),
    [
        ("330x291 image", "image", 132),
        ("612x792 page", "page", 1496),
        ("0x0 image", "image", 1),
        ("330x291 video", "330x291 video", 0),
        ("x image", "x image", 0),
        ("-1x5 image", "-1x5 image", 0),
        ("parameter", "parameter", 0),
        ("cl100k", "cl100k", 0),
        ("bash_20250124", "bash_20250124", 244),
    ],
)
def test_facts_that_tell_their_size(fact: str, constant: str, tokens: int) -> None:
    assert (constant_of(fact), size_tokens(fact, "claude-3")) == (constant, tokens)


@pytest.mark.parametrize("name", ["tiktoken", "bytes"])
def test_enabled_citations_are_a_prompt_of_their_own(name: str) -> None:
    """At the head of the system layer, as toggling them leaves the tools cached."""
    rules = RuleBook().rules("anthropic", "claude-sonnet-4-6")
    counter = make_counter(name, rules.generation)

    def hidden(cites: bool) -> Any:
        block = {"type": "document", "source": text("Ab."), "citations": {"enabled": cites}}
        body = {"model": rules.model, "messages": [{"role": "user", "content": [block]}]}
        return counter.hidden(Intake(keep_content=True).body(body), rules)

    prompt = calibration("claude-3").structure["citations"]
    assert 450 < prompt < 500
    assert hidden(cites=True).system - hidden(cites=False).system == (prompt if name == "tiktoken" else 0)
    assert hidden(cites=True).tail == hidden(cites=False).tail


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-sonnet-4-6", "claude-opus-5"])
def test_an_image_adds_its_formula_and_three_tokens(model: str) -> None:
    """As 146 recorded calls with an image of known size were billed, on every model but Haiku 3.5."""
    rules = RuleBook().rules("anthropic", model)
    counter = make_counter("tiktoken", rules.generation)

    def total(content: list[dict[str, Any]]) -> int:
        request = Intake(keep_content=True).body({"model": model, "messages": [{"role": "user", "content": content}]})
        return Renderer(counter).render(request, (), rules).total_tokens

    question = {"type": "text", "text": "What is in this image?"}
    square = {"type": "image", "source": base64(png(1000, 1000), "image/png")}
    assert total([square, question]) - total([question]) == 1296 + 3
