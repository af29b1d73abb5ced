"""The measurement of other makers' tokenizers: on invented bills and vocabularies, whose numbers we know."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import CannotEvaluate, InputError
from cachecost.tokens.calibration import SCRIPTS
from cachecost.tokens.tokenizers import encoder
from tools.calibrate import harmony, makers
from tools.calibrate.maker_counts import Fit, MakerCounts, Piece, features_of
from tools.calibrate.makers import bills_in, main, middle, of
from tools.calibrate.samples import Sample
from tools.calibrate.vocabularies import encoded_by, tokenizer

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOL = {"name": "read", "description": "Read a file of the tree.", "input_schema": SCHEMA}
TEXT = {"role": "user", "content": "The quick brown fox jumps over the lazy dog, and you may quote it. " * 4}
CALLS = [
    TEXT,
    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "read", "input": {"path": "a.txt"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "It is all there."}]},
]
FORMAT = {"format": {"type": "json_schema", "schema": SCHEMA}}


def row(source: str, total: int, **body: Any) -> dict[str, Any]:
    return {
        "source": source,
        "request": {"model": "gpt-4o", "messages": [TEXT], **body},
        "usage": {"input_tokens": total},
    }


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    return path


@pytest.fixture
def maker_counts(monkeypatch: pytest.MonkeyPatch) -> MakerCounts:
    """OpenAI's tokenizer, and one that cuts everything in two; a definition costs 20."""
    monkeypatch.setattr(harmony, "tool_tokens", lambda content: 20)
    o200k = encoded_by(encoder("o200k_base"))
    return MakerCounts({"o200k": o200k, "twice": lambda text: 2 * o200k(text)})


def one(path: Path, **body: Any) -> Sample:
    (found,) = bills_in([written(path, [row("a", 100, **body)])])
    return found


@pytest.mark.parametrize(
    ("body", "features"),
    [
        ({}, {"turn": 1, "end": 1}),
        ({"system": "Be brief."}, {"turn": 1, "end": 1, "system": 1}),
        ({"tools": [TOOL, TOOL | {"name": "b"}]}, {"turn": 1, "end": 1, "tools": 1}),
        ({"messages": CALLS}, {"turn": 3, "end": 1, "tool_use": 1, "parameter": 1, "tool_result": 1}),
        ({"messages": CALLS[:2]}, {"turn": 2, "tool_use": 1, "parameter": 1}),
        ({"output_config": FORMAT}, {"turn": 1, "end": 1, "format": 1}),
    ],
)
def test_features_of_a_prompt(tmp_path: Path, body: dict[str, Any], features: Mapping[str, int]) -> None:
    assert features_of(one(tmp_path / "log.jsonl", **body), "o200k") == features


IMAGE = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}


def test_bills_that_tell_something(tmp_path: Path) -> None:
    """Each prompt once; 50 tokens and more; none with images, thinking, or tools that nobody defined."""
    rows = [
        row("a", 100),
        row("b", 100),
        row("a", 101),
        row("a", 49, system="Be brief."),
        row("a", 50, system="Be brief."),
        row("a", 100, messages=[{"role": "user", "content": [IMAGE]}]),
        row("a", 100, messages=[{"role": "user", "content": [{"type": "tool_result", "content": [IMAGE]}]}]),
        row("a", 100, tools=[{"type": "web_search_20250305", "name": "web_search"}]),
    ]
    found = bills_in([written(tmp_path / "log.jsonl", rows)])
    assert [(bill.source, bill.total) for bill in found] == [("a", 100), ("a", 101), ("a", 50)]


def test_a_damaged_log_says_where(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'expected a JSON object with "request" and "usage"'):
        bills_in([written(tmp_path / "log.jsonl", [{"request": {}}])])


def test_a_definition_counts_as_json_and_as_it_is_published(tmp_path: Path, maker_counts: MakerCounts) -> None:
    sample = one(tmp_path / "log.jsonl", tools=[TOOL])
    piece = maker_counts.piece(sample.blocks[0])
    assert piece.shown == 20
    assert (
        piece.tokens["twice"]
        == 2 * piece.tokens["o200k"]
        == 2
        * len(
            encoder("o200k_base")(
                json.dumps(
                    {
                        "type": "function",
                        "function": {"name": "read", "description": TOOL["description"], "parameters": SCHEMA},
                    }
                )
            )
        )
    )
    text = maker_counts.piece(sample.blocks[1])
    assert text.shown == text.tokens["o200k"]


@pytest.mark.parametrize(("cl100k", "tokens"), [(10, 5), (59, 30), (60, 30), (61, 31), (200, 170)])
def test_a_definition_is_its_text_less_a_constant_and_at_least_a_share(cl100k: int, tokens: int) -> None:
    fit = Fit({"tools": 1.0}, {"tool": -30}, 0.5)
    assert fit.tokens(Piece("tools", cl100k, {}, 0)) == tokens


def test_constants_and_ratios_are_found(tmp_path: Path, maker_counts: MakerCounts) -> None:
    """Bills at 9 tokens a system block, besides 4 a turn and 3 for the answer, which are held."""
    texts = [TEXT["content"] + "x" * n for n in range(12)]
    log = tmp_path / "log.jsonl"
    rows = [row("a", 60, system=text[:9], messages=[{"role": "user", "content": text}]) for text in texts]
    samples = bills_in([written(log, rows)])
    words = [sum(maker_counts.piece(block).tokens["o200k"] for block in sample.blocks) for sample in samples]
    rows = [{**a, "usage": {"input_tokens": n + 4 + 3 + 9}} for a, n in zip(rows, words, strict=True)]
    kinds = [
        row("b", 60, messages=[{"role": "user", "content": text}], tools=[TOOL])
        for text in ("if (a[i]) { b(); } else { c = d[e] * f; }", "12 345 678 90 12 3456")
    ]
    billed = bills_in([written(log, rows)])
    texts_ = maker_counts.texts([*billed, *bills_in([written(tmp_path / "kinds.jsonl", kinds)])], [])
    fit = maker_counts.billed("o200k", billed, bills_in([tmp_path / "kinds.jsonl"]) + long_tools(tmp_path), texts_)
    assert (fit.structure["system"], fit.structure["turn"], fit.structure["end"]) == (9, 4, 3)
    assert [maker_counts.billed_error(sample, "o200k", fit) for sample in billed] == pytest.approx([0] * 12, abs=0.03)
    single, double = middle(texts_, ["o200k"]), middle(texts_, ["twice"])
    assert all(
        double[kind] == pytest.approx(2 * single[kind], abs=0.002) for kind in single if kind not in ("tools", *SCRIPTS)
    )
    assert middle(texts_, ["o200k", "o200k", "twice"]) == single


def test_geminis_definitions_are_told_by_its_bills(tmp_path: Path, maker_counts: MakerCounts) -> None:
    """One token a message and a system prompt; a definition 40 less than its text; no schema; no answers sent again."""
    maker_counts.makers = {**maker_counts.makers, "gemini": maker_counts.makers["o200k"]}
    tools = [{**TOOL, "description": f"Word {n} of a story, {n * n}; and another one, {n * 7}. " * 8} for n in range(3)]
    texts = [TEXT["content"], "if (a[i]) { b(); } else { c = d[e] * f; }", "12 345 678 90 12 3456"]
    bodies = [{"model": "gemini-3.5-flash", "messages": [{"role": "user", "content": text}]} for text in texts]
    plain = [{"source": "a", "request": {**body, "tools": tools}, "usage": {"input_tokens": 60}} for body in bodies]
    samples = bills_in([written(tmp_path / "plain.jsonl", plain)])
    found = maker_counts.texts(samples, [])
    ratio = middle(found, ["gemini"])["tools"]
    rows = []
    for one_, sample in zip(plain, samples, strict=True):
        pieces = [maker_counts.piece(block) for block in sample.blocks]
        total = sum(piece.cl100k * ratio - 40 for piece in pieces[:3]) + pieces[3].tokens["gemini"] + 1
        told = {**one_["request"], "output_config": FORMAT}
        rows.append({**one_, "request": told, "usage": {"input_tokens": round(total)}})
    answered = {**rows[0]["request"], "messages": CALLS}
    billed = bills_in([written(tmp_path / "log.jsonl", [*rows, {**rows[0], "request": answered}])])
    assert [len(of(maker, billed)) for maker in ("gemini", "o200k")] == [3, 0]
    fit = maker_counts.billed("gemini", of("gemini", billed), [], found)
    assert (fit.structure["tool"], fit.ratios["schema"]) == (-40, 0)
    assert [maker_counts.billed_error(sample, "gemini", fit) for sample in of("gemini", billed)] == pytest.approx(
        [0] * 3, abs=0.01
    )


def long_tools(folder: Path) -> list[Sample]:
    """Two long definitions, so that a constant can be told."""
    about = " ".join(f"Word {n} of a long story that does not repeat itself, {n * n}." for n in range(12))
    return [one(folder / "wide.jsonl", tools=[TOOL, {**TOOL, "name": name, "description": about}]) for name in "ab"]


def test_the_whole_of_it(
    tmp_path: Path, maker_counts: MakerCounts, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that the package can read, with a row for every maker; four vocabularies are one here."""
    cl100k = encoded_by(encoder("cl100k_base"))
    monkeypatch.setattr(makers, "tokenizer", lambda maker, file: cl100k)
    about = " ".join(f"Word {n} of a long story that does not repeat itself, {n * n}." for n in range(12))
    tools = [TOOL, {**TOOL, "name": "tell", "description": about}]
    texts = [TEXT["content"], "if (a[i]) { b(); } else { c = d[e] * f; }", "12 345 678 90 12 3456"]
    bills = [
        row(source, 300 + n, messages=[{"role": "user", "content": f"{text} {source}"}], tools=tools)
        for source in "ab"
        for n, text in enumerate(texts)
    ]
    claude = [{**a, "request": {**a["request"], "model": "claude-sonnet-4-5"}} for a in bills]
    logs = [str(written(tmp_path / name, rows)) for name, rows in (("c.jsonl", claude), ("b.jsonl", bills))]
    target = tmp_path / "makers.toml"
    given = [logs[0], "--bills", logs[1], "--text", "--date", "2026-11-22", "--write", str(target)]
    assert main(given) == 0
    assert capsys.readouterr().out == target.read_text(encoding="utf-8")
    data = tomllib.loads(target.read_text(encoding="utf-8"))
    assert (data["fit"]["requests"], data["fit"]["bills"], data["fit"]["sources"]) == (6, 6, ["a", "b"])
    assert list(data["generations"]) == ["o200k", "gemini", "deepseek", "mistral", "qwen", "grok", "minimax", "open"]
    assert data["generations"]["qwen"]["ratio"]["text"] == 1
    assert data["generations"]["qwen"]["confidence"] == "measured"
    assert data["generations"]["grok"]["confidence"] == "assumed"
    assert data["generations"]["o200k"]["structure"]["tool"] < 0 < data["generations"]["o200k"]["tool_least"]
    assert "tool" not in data["generations"]["qwen"]["structure"]


def test_a_vocabulary_that_is_not_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CannotEvaluate, match=r"^--tokenizer gemini=FILE is missing: a row for each maker needs"):
        tokenizer("gemini", "")
    assert main(["x.jsonl", "--bills", "y.jsonl", "--date", "2026-11-22"]) == 3
    assert "--tokenizer gemini=FILE is missing" in capsys.readouterr().err


def test_mistrals_vocabulary(tmp_path: Path) -> None:
    """Bytes, and one pair; special tokens and what is beyond the vocabulary's size do not count."""
    import base64

    def entry(rank: int, token: bytes) -> dict[str, Any]:
        return {"rank": rank, "token_bytes": base64.b64encode(token).decode()}

    file = tmp_path / "tekken_1.json"
    vocab = [*(entry(n, bytes([n])) for n in range(256)), entry(256, b"ab"), entry(257, b"cd")]
    config = {"pattern": r"\w+|\W", "default_vocab_size": 267, "default_num_special_tokens": 10}
    file.write_text(json.dumps({"config": config, "vocab": vocab}), encoding="utf-8")
    count = tokenizer("mistral", str(file))
    assert [count(text) for text in ("", "ab", "abab", "cd", "ab ab", "\ud800")] == [0, 1, 2, 2, 3, 1]
