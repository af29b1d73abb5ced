"""Tools that the provider defines: their sizes by type and generation, and what stands in for an unknown version."""

import tomllib
from importlib.resources import files
from typing import Any

import pytest

from cachecost.prompts.request import block_of
from cachecost.tokens.calibration import calibration
from cachecost.tokens.factory import make_counter
from cachecost.tokens.parts import GENERATIONS, known_tool, parts_of, provider_tool_tokens


@pytest.mark.parametrize(
    ("type_", "tokens"),
    [
        ("bash_20250124", (244, 325, 325)),
        ("text_editor_20250429", (700, 700, 700)),
        ("code_execution_20260120", (1740, None, 2571)),
        ("web_fetch_20250910", (526, None, 760)),
        ("tool_search_tool_bm25_20251119", (188, None, None)),
        ("computer_toolset_20260801", (None, None, 4234)),
        ("custom", (0, 0, 0)),
    ],
)
def test_sizes_by_generation(type_: str, tokens: tuple[int | None, ...]) -> None:
    found = [provider_tool_tokens(type_, generation) for generation in GENERATIONS]
    assert [given for given, told in zip(found, tokens, strict=True) if told is not None] == [
        told for told in tokens if told is not None
    ]


def test_a_generation_that_no_row_tells_grows_from_the_one_before() -> None:
    growth = calibration("claude-4.8").ratio["tools"] / calibration("claude-3").ratio["tools"]
    assert provider_tool_tokens("tool_search_tool_bm25_20251119", "claude-4.8") == round(188 * growth)
    assert provider_tool_tokens("computer_toolset_20260801", "claude-3") == round(4234 / growth)


@pytest.mark.parametrize(
    ("type_", "row"),
    [
        ("bash_20250124", "bash_20250124"),
        ("bash_20261224", "bash_20250124"),
        ("bash_20241231", "bash_20241022"),
        ("bash_20200101", "bash_20241022"),
        ("text_editor_20250601", "text_editor_20250429"),
        ("tool_search_tool_bm25_20991231", "tool_search_tool_bm25_20251119"),
        ("tool_search_tool_20251119", None),
        ("bash", None),
        ("bash_2025", None),
        ("memory_20250818", None),
        ("custom", None),
        ("None", None),
        ("", None),
    ],
)
def test_an_unknown_version_counts_as_one_of_its_family(type_: str, row: str | None) -> None:
    assert known_tool(type_) == row


@pytest.mark.parametrize("generation", ["claude-3", "claude-4.8"])
@pytest.mark.parametrize(
    ("tool", "guessed"),
    [
        ({"type": "bash_20250124", "name": "bash"}, ()),
        ({"type": "bash_20250124", "name": "bash", "cache_control": {"type": "ephemeral"}}, ()),
        ({"type": "bash_20991231", "name": "bash"}, ("tool",)),
    ],
)
def test_a_definition_is_its_row_and_nothing_more(
    tool: dict[str, Any], guessed: tuple[str, ...], generation: str
) -> None:
    counter = make_counter("tiktoken", generation)
    assert counter.block(block_of("", tool)) == provider_tool_tokens("bash_20250124", generation)
    assert counter.guessed_kinds == guessed  # type: ignore[attr-defined]


def test_an_unknown_family_counts_as_its_json() -> None:
    counter = make_counter("tiktoken", "claude-3")
    assert 5 < counter.block(block_of("", {"type": "memory_20250818", "name": "memory"})) < 30
    assert counter.guessed_kinds == ("tool",)  # type: ignore[attr-defined]


def test_a_clients_tool_is_none_of_the_providers() -> None:
    tool = {"type": "bash_20250124", "name": "bash", "input_schema": {"type": "object"}}
    assert parts_of("tool", tool).facts == {}


@pytest.mark.parametrize("file", ["provider_tools.toml", "images.toml"])
def test_every_row_names_a_dated_source(file: str) -> None:
    data = tomllib.loads(files("cachecost.tokens").joinpath(file).read_text(encoding="utf-8"))
    sources = data.pop("sources")
    rows = [row for table in data.values() for row in (table.values() if "source" not in table else [table])]
    assert {row["source"] for row in rows} == set(sources)
    assert all(set(source) == {"date", "title"} for source in sources.values())


@pytest.mark.parametrize(
    ("type_", "tokens"),
    [
        *(("code_execution_20250522", 423), ("code_execution_20250825", 1740), ("code_execution_20260120", 1740)),
        *(("code_execution_20250601", 423), ("code_execution_20990101", 1740)),  # the latest that is not newer
    ],
)
def test_each_version_of_code_execution_has_its_own_definition(type_: str, tokens: int) -> None:
    row = known_tool(type_)
    assert row is not None and provider_tool_tokens(row, "claude-3") == tokens
