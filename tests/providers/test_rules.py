"""Rules by model and day: rows on both sides of each date, and what is not known."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from cachecost.base.errors import CannotEvaluate
from cachecost.prompts.output_format import effort_layer
from cachecost.providers import hosts as rulefile
from cachecost.providers.assumptions import Assumptions
from cachecost.providers.hosts import FOLDER, NO_HOST, catalogue, hosts
from cachecost.providers.rules import HiddenTokens, RuleBook, VisibilityLag, data_date

HOST = "anthropic"
KNOWN = ", ".join(hosts())
SHIPPED = date(2026, 11, 21)
MODELS = sorted(catalogue(HOST).models)


def rules(model: str, day: str | None = None, **assumptions: str):
    return RuleBook(Assumptions(**assumptions)).rules(HOST, model, date.fromisoformat(day) if day else None)


MINIMUMS = """
claude-fable-5-2       2026-11-09  512
claude-mythos-5-2      2026-11-21  512
claude-haiku-5-5       2026-10-07  512
claude-sonnet-5-5      2026-09-28  512
claude-opus-5-5        2026-09-22  512
claude-fable-5-1       2026-09-01  512
claude-mythos-5-1      2026-09-01  512
claude-opus-5          2026-07-24  512
claude-sonnet-5        2026-06-30  1024
claude-fable-5         2026-06-09  512
claude-mythos-5        2026-06-09  512
claude-opus-4-8        2026-05-28  1024
claude-opus-4-7        2026-04-16  4096
claude-opus-4-7        2026-06-09  4096
claude-opus-4-7        2026-06-10  2048
claude-opus-4-7        2026-11-21  2048
claude-mythos-preview  2026-04-08  4096
claude-mythos-preview  2026-06-09  4096
claude-mythos-preview  2026-06-10  2048
claude-sonnet-4-6      2026-02-17  1024
claude-sonnet-4-6      2026-02-26  1024
claude-sonnet-4-6      2026-02-27  2048
claude-sonnet-4-6      2026-05-13  2048
claude-sonnet-4-6      2026-05-14  1024
claude-opus-4-6        2026-03-07  4096
claude-opus-4-5        2026-01-13  4096
claude-haiku-4-5       2026-01-13  4096
claude-sonnet-4-5      2026-01-13  1024
claude-opus-4-1        2026-01-13  1024
claude-opus-4          2026-01-13  1024
claude-sonnet-4        2026-01-13  1024
claude-3-7-sonnet      2026-01-13  1024
claude-3-5-haiku       2026-01-13  2048
claude-3-haiku         2026-01-13  2048
"""


@pytest.mark.parametrize("line", MINIMUMS.strip().splitlines())
def test_the_minimum_of_each_day(line: str) -> None:
    model, day, minimum = line.split()
    assert rules(model, day).minimum_tokens == int(minimum)


EFFORTS = """
claude-sonnet-4-5  2026-11-21  thinking  -
claude-sonnet-4-6  2026-02-17  tools     -
claude-opus-4-6    2026-11-21  thinking  -
claude-opus-4-7    2026-04-16  tools     -
claude-opus-4-8    2026-05-28  thinking  -
claude-fable-5     2026-06-09  tools     -
claude-sonnet-5    2026-06-30  messages  -
claude-opus-5      2026-07-24  tools     message
claude-fable-5-1   2026-09-01  thinking  message
claude-mythos-5-1  2026-09-01  thinking  message
claude-opus-5-5    2026-09-22  thinking  message
claude-sonnet-5-5  2026-09-28  thinking  message
claude-haiku-5-5   2026-10-07  thinking  message
"""


@pytest.mark.parametrize("line", EFFORTS.strip().splitlines())
def test_what_another_effort_starts_over_and_which_models_take_it_in_a_message(line: str) -> None:
    model, day, layer, by_message = line.split()
    found = rules(model, day)
    assert (found.effort_layer, found.accepts_message_effort) == (layer, by_message == "message")
    there = RuleBook().rules("google-cloud", model)
    assert (there.effort_layer, there.accepts_message_effort) == (layer, by_message == "message")


@pytest.mark.parametrize("model", ["claude-sonnet-5", "claude-opus-5"])
def test_efforts_on_bedrock_are_those_measured_there_and_in_no_message(model: str) -> None:
    found = RuleBook().rules("bedrock", model)
    assert (found.effort_layer, found.accepts_message_effort) == ("thinking", False)
    assert not RuleBook().rules("foundry", model).accepts_message_effort


@pytest.mark.parametrize(
    ("host", "model", "layer"),
    [
        ("anthropic", "claude-sonnet-5", "messages"),
        ("bedrock", "claude-sonnet-5", "tools"),  # as the thinking configuration there
        ("openai", "gpt-5.6-sol", "tools"),  # by keyed_by, as of each other maker
        ("bedrock", "amazon.nova-lite-v1:0", ""),
    ],
)
def test_the_layer_of_the_effort_is_that_of_the_hosts_own_cache_keys(host: str, model: str, layer: str) -> None:
    assert effort_layer(RuleBook().rules(host, model)) == layer


KEEP_THINKING = {
    "claude-fable-5-2", "claude-mythos-5-2", "claude-fable-5-1", "claude-mythos-5-1", "claude-fable-5",
    "claude-mythos-5", "claude-mythos-preview", "claude-opus-5-5", "claude-opus-5", "claude-opus-4-8",
    "claude-opus-4-7", "claude-opus-4-6", "claude-opus-4-5", "claude-sonnet-5-5", "claude-sonnet-5",
    "claude-sonnet-4-6", "claude-haiku-5-5",
}  # fmt: skip
REFUSE_FORCED = {
    "claude-fable-5-1", "claude-fable-5-2", "claude-mythos-5-1", "claude-mythos-5-2", "claude-opus-5-5",
    "claude-sonnet-5-5",
}  # fmt: skip
OLD_TOKENIZER = {
    "claude-sonnet-4-6", "claude-opus-4-6", "claude-opus-4-5", "claude-haiku-4-5", "claude-sonnet-4-5",
    "claude-opus-4-1", "claude-opus-4", "claude-sonnet-4", "claude-3-7-sonnet", "claude-3-5-haiku",
    "claude-3-5-sonnet", "claude-3-haiku", "claude-3-opus",
}  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
def test_the_classes_of_each_model(model: str) -> None:
    found = rules(model)
    assert found.model == model
    assert found.keeps_thinking == (model in KEEP_THINKING)
    assert found.accepts_forced_choice == (model not in REFUSE_FORCED)
    assert found.default_effort == ("medium" if model in {"claude-opus-5-5", "claude-haiku-5-5"} else "high")
    assert (found.generation == "claude-3") == (model in OLD_TOKENIZER)
    assert set(found.hidden.tool_prompt) == {"auto", "any", "tool"} - (
        {"any", "tool"} if model in REFUSE_FORCED else set()
    )


GENERATIONS = [
    ("claude-opus-4-6", "claude-3", 1, 3),
    ("claude-opus-4-7", "claude-4.7", 1, 5),
    ("claude-opus-4-8", "claude-4.8", 2, 2),
    ("claude-haiku-5-5", "claude-4.8", 2, 2),
]


@pytest.mark.parametrize(("model", "generation", "const", "turn"), GENERATIONS)
def test_the_frame_of_each_tokenizer_generation(model: str, generation: str, const: int, turn: int) -> None:
    found = rules(model)
    assert (found.generation, found.hidden.frame_const, found.hidden.frame_turn) == (generation, const, turn)


TOOL_PROMPTS = """
claude-opus-5-5     286
claude-sonnet-5-5   286
claude-haiku-5-5    286 406
claude-opus-5       286 406
claude-fable-5      286 406
claude-opus-4-8     290 410
claude-opus-4-7     675 804
claude-opus-4-6     497 589
claude-opus-4-5     496 588
claude-opus-4-1     313 315
claude-opus-4       313 315
claude-sonnet-5     354 474
claude-sonnet-4-6   497 589
claude-sonnet-4-5   496 588
claude-sonnet-4     313 315
claude-haiku-4-5    496 588
claude-3-5-haiku    264 355
"""


@pytest.mark.parametrize("line", TOOL_PROMPTS.strip().splitlines())
def test_the_published_tool_prompt(line: str) -> None:
    model, auto, *forced = line.split()
    expected = {"auto": int(auto)} | {choice: int(tokens) for tokens in forced for choice in ("any", "tool")}
    assert rules(model).hidden.tool_prompt == expected


def test_the_hidden_tokens_of_the_recorded_session() -> None:
    assert rules("claude-opus-4-6", "2026-03-07").hidden == HiddenTokens(
        tool_prompt={"auto": 497, "any": 589, "tool": 589},
        frame_const=1,
        frame_turn=3,
        forced_tail={"any": 16, "tool": 21},
        thinking_prefix=22,
        thinking_tail=7,
        adaptive_prefix=17,
        adaptive_tail=0,
    )


@pytest.mark.parametrize("model", [model for model in MODELS if model != "claude-3-opus"])
def test_no_hidden_part_is_negative(model: str) -> None:
    """A forced choice adds at least what of it comes after the last block (on Opus 3 its prompt is shorter)."""
    prompt, tail = (rules(model).hidden.tool_prompt, rules(model).hidden.forced_tail)
    for choice in set(prompt) - {"auto"}:
        assert prompt[choice] - prompt["auto"] >= tail[choice] >= 0


WINDOWS = """
claude-opus-4-6    2026-02-05  1000000  200000
claude-opus-4-6    2026-03-12  1000000  200000
claude-opus-4-6    2026-03-13  1000000  1000000
claude-sonnet-4-6  2026-03-12  1000000  200000
claude-sonnet-4-6  2026-03-13  1000000  1000000
claude-sonnet-4-5  2026-04-29  1000000  200000
claude-sonnet-4-5  2026-04-30  200000   200000
claude-sonnet-4    2025-08-11  200000   200000
claude-sonnet-4    2025-08-12  1000000  200000
claude-sonnet-4    2026-04-30  200000   200000
claude-haiku-4-5   2026-11-21  200000   200000
claude-haiku-5-5   2026-11-21  1000000  1000000
claude-opus-4-1    2026-01-01  200000   200000
"""


@pytest.mark.parametrize("line", WINDOWS.strip().splitlines())
def test_the_context_window_of_each_day(line: str) -> None:
    model, day, window, standard = line.split()
    found = rules(model, day)
    assert (found.context_window, found.standard_context_window) == (int(window), int(standard))


RUNS = [
    ("by_date", "2026-08-31", False),
    ("by_date", "2026-09-01", True),
    ("collapsed", "2026-08-31", True),
    ("counted", "2026-09-01", False),
]


@pytest.mark.parametrize(("reading", "day", "collapses"), RUNS)
def test_when_runs_are_one_position(reading: str, day: str, collapses: bool) -> None:
    assert rules("claude-opus-4-8", day, lookback_runs=reading).collapses_runs is collapses


@pytest.mark.parametrize(("day", "scope"), [("2026-02-04", "organization"), ("2026-02-05", "workspace")])
def test_who_shares_entries(day: str, scope: str) -> None:
    assert rules("claude-opus-4-5", day).scope == scope


def test_what_holds_for_every_model() -> None:
    for model in MODELS:
        found = rules(model)
        assert (found.lookback_positions, found.maximum_breakpoints, found.ttl_s) == (
            20,
            4,
            {"5m": 300.0, "1h": 3600.0},
        )


ALIASES = [
    ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
    ("claude-opus-4-0", "claude-opus-4"),
    ("claude-opus-4-20250514", "claude-opus-4"),
    ("claude-opus-4.6", "claude-opus-4-6"),
    ("claude-3-7-sonnet-latest", "claude-3-7-sonnet"),
    ("claude-3-5-haiku-20241022", "claude-3-5-haiku"),
    ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
]


@pytest.mark.parametrize(("alias", "model"), ALIASES)
def test_an_alias_is_its_model(alias: str, model: str) -> None:
    assert rules(alias) == rules(model)
    assert rules(alias).model == model


def test_no_name_means_two_models() -> None:
    names = [name for model in catalogue(HOST).models.values() for name in (model.id, *model.aliases)]
    assert len(names) == len(set(names))


FROM = "known from 2026-07-24: --as-of 2026-07-24"
UNKNOWN = [
    (HOST, "claude-opus-46", None, "unknown model 'claude-opus-46' on host anthropic{claude-opus-4-6}"),
    (HOST, "claude-sonet-5", None, "unknown model 'claude-sonet-5' on host anthropic{claude-sonnet-5}"),
    (HOST, "", None, "unknown model '' on host anthropic"),
    (
        HOST,
        "sonnet-4-20250929",
        None,
        "unknown model 'sonnet-4-20250929' on host anthropic{claude-sonnet-4-5-20250929}",
    ),
    (
        HOST,
        "claude-opus-5",
        "2025-01-01",
        f"claude-opus-5 has no rules on 2025-01-01; {FROM}",
    ),
    (
        HOST,
        "claude-opus-5",
        "2026-07-23",
        f"claude-opus-5 has no rules on 2026-07-23; {FROM}",
    ),
    ("antropic", "x", None, f"no rules for host 'antropic'{{anthropic}}; known: {KNOWN}"),
    ("phone", "x", None, f"no rules for host 'phone'; known: {KNOWN}"),
]


@pytest.mark.parametrize(("host", "model", "day", "text"), UNKNOWN)
def test_what_is_not_known_is_said(host: str, model: str, day: str | None, text: str) -> None:
    """{x} stands for the near name that is offered."""
    with pytest.raises(CannotEvaluate) as caught:
        RuleBook().rules(host, model, date.fromisoformat(day) if day else None)
    assert str(caught.value) == text.replace("{", " (did you mean '").replace("}", "'?)")


def test_a_near_name_that_is_retired_says_since_when() -> None:
    words = "unknown model 'o4-minn' on host openai (did you mean 'o4-mini'? It was retired on 2026-10-23.)"
    with pytest.raises(CannotEvaluate) as caught:
        RuleBook().rules("openai", "o4-minn")
    assert str(caught.value) == words


def test_every_model_has_rules_on_every_day_of_its_life() -> None:
    book = RuleBook()
    for model in catalogue(HOST).models.values():
        days = (model.released, date(2024, 8, 13), date(2024, 8, 14), catalogue(HOST).data_date)
        assert all(book.rules(HOST, model.id, day).ttl_s for day in days if day >= model.released), model.id


THINKS = {
    *("claude-fable-5-2", "claude-fable-5-1", "claude-fable-5", "claude-mythos-5-2", "claude-mythos-5-1"),
    *("claude-mythos-5", "claude-mythos-preview", "claude-haiku-5-5", "claude-sonnet-5-5", "claude-opus-5-5"),
    *("claude-opus-5", "claude-sonnet-5"),
}
"""Models that think unless told not to."""


def test_which_models_think_by_default() -> None:
    book = RuleBook()
    default = {model: book.rules(HOST, model).default_thinking for model in catalogue(HOST).models}
    assert {model for model, thinking in default.items() if thinking == "adaptive"} == THINKS
    assert set(default.values()) == {"adaptive", "disabled"}


LAGS = [
    ("anthropic", "claude-sonnet-4-6", "2026-03-11", False),
    ("anthropic", "claude-sonnet-4-6", "2026-03-12", True),
    ("anthropic", "claude-sonnet-4-5", "2026-04-26", True),
    ("anthropic", "claude-sonnet-4-5", "2026-04-27", False),
    ("anthropic", "claude-opus-4-6", "2026-04-01", False),
    ("bedrock", "claude-sonnet-4-6", "2026-04-01", False),
    ("google-cloud", "claude-sonnet-4-6", "2026-04-01", False),
    ("foundry", "claude-sonnet-4-6", "2026-04-01", False),
    ("openrouter", "claude-sonnet-4-6", "2026-04-01", False),
]


@pytest.mark.parametrize(("host", "model", "day", "lags"), LAGS)
def test_when_entries_became_readable_late(host: str, model: str, day: str, lags: bool) -> None:
    lag = RuleBook().rules(host, model, date.fromisoformat(day)).visibility_lag
    assert lag == (VisibilityLag(2.5, 0.35) if lags else None)


def test_as_of_wins_over_the_day_of_the_call() -> None:
    book = RuleBook(as_of=date(2026, 3, 7))
    assert book.rules(HOST, "claude-sonnet-4-6", date(2026, 11, 1)).minimum_tokens == 2048
    assert book.rules(HOST, "claude-sonnet-4-6").day == date(2026, 3, 7)


def test_the_shipped_data_decides_without_a_day() -> None:
    assert data_date() == SHIPPED
    assert rules("claude-opus-4-7") == rules("claude-opus-4-7", "2026-11-21")


def test_a_retired_model_keeps_its_last_rules() -> None:
    found = rules("claude-sonnet-4", "2026-11-21")
    assert (found.minimum_tokens, found.retired) == (1024, date(2026, 6, 15))
    assert rules("claude-opus-4-6").retired is None


def test_switches_come_with_the_rules() -> None:
    assumptions = Assumptions(ttl_in_key=True)
    assert RuleBook(assumptions).rules(HOST, "claude-opus-5").assumptions is assumptions


def test_asking_again_gives_the_same_rules() -> None:
    book = RuleBook()
    assert book.rules(HOST, "claude-opus-5") is book.rules(HOST, "claude-opus-5")


def test_every_model_has_every_rule_from_its_release_on() -> None:
    cached_from = date(2024, 8, 14)
    for model in catalogue(HOST).models.values():
        for day in (max(model.released, cached_from), SHIPPED):
            assert RuleBook().rules(HOST, model.id, day).model == model.id
        with pytest.raises(CannotEvaluate):
            RuleBook().rules(HOST, model.id, model.released - timedelta(days=1))


def test_rows_of_a_rule_follow_each_other() -> None:
    for model in catalogue(HOST).models.values():
        for rows in model.rows.values():
            starts = [row.start for row in rows]
            assert starts == sorted(set(starts))
            assert starts[0] == model.released


def test_hosts_are_the_rule_files() -> None:
    assert set(hosts()) >= {"anthropic", "bedrock", "foundry", "google-cloud"}
    assert {path.stem for path in FOLDER.iterdir()} == {*hosts(), *NO_HOST}
    assert all(catalogue(host).host == host for host in hosts())


NEW_MODEL = """
[[model]]
id = "claude-next-6"
released = 2026-11-20
source = "notes"
generation = "claude-4.8"
minimum_tokens = [{ value = 512, from = 2026-11-20 }, { value = 256, from = 2026-12-01 }]
keeps_thinking = true
context_window = 1_000_000
standard_context_window = 1_000_000
tool_prompt = { auto = 286, any = 406, tool = 406 }
"""


def test_a_new_model_is_one_table_and_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (FOLDER / "anthropic.toml").read_text(encoding="utf-8") + NEW_MODEL
    (tmp_path / "anthropic.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(rulefile, "FOLDER", tmp_path)
    rulefile.catalogue.cache_clear()
    try:
        assert rules("claude-next-6").minimum_tokens == 512
        assert rules("claude-next-6", "2026-12-01").minimum_tokens == 256
        assert rules("claude-next-6").hidden.frame_turn == 2
    finally:
        rulefile.catalogue.cache_clear()
