"""Rules of the hosts of other makers: what each states, in which way of caching, and what it does not know."""

from datetime import date
from decimal import Decimal

import pytest
from click.testing import CliRunner

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.caches.reporting import reported_read
from cachecost.commands import listings
from cachecost.commands.listings import value_words
from cachecost.providers.assumptions import Assumptions
from cachecost.providers.hosts import catalogue, hosts
from cachecost.providers.listing import model_rows, rule_rows
from cachecost.providers.rules import HiddenTokens, ModelRules, RuleBook, StatedRange

BOOK = RuleBook()
OTHERS = ("deepseek", "gemini", "minimax", "mistral", "openai", "qwen", "sglang", "vllm", "xai")
HIDES = ("xai",)
"""Its bills count text of its own, which its rules state."""
GENERATIONS = {"o200k", "gemini", "deepseek", "grok", "mistral", "qwen", "minimax", "open", "given"}


def rules(host: str, model: str, day: str | None = None, **assumptions: str) -> ModelRules:
    return RuleBook(Assumptions(**assumptions)).rules(host, model, date.fromisoformat(day) if day else None)


def test_the_hosts_are_the_choices_of_the_command_line() -> None:
    shown = CliRunner().invoke(listings.rules, ["--host", "nowhere"])
    assert shown.exit_code == 2 and ", ".join(sorted(hosts())) in shown.output


@pytest.mark.parametrize("host", OTHERS)
def test_every_model_has_every_rule_in_every_way_from_its_first_day_on(host: str) -> None:
    book = catalogue(host)
    for row in model_rows(BOOK, host):
        first = BOOK.rules(host, row.id, row.released)
        assert first.generation in GENERATIONS
        assert first.host == host
        assert (first.hidden == HiddenTokens()) == (host not in HIDES)
        with pytest.raises(CannotEvaluate, match="has no rules on"):
            BOOK.rules(host, row.id, date.fromordinal(row.released.toordinal() - 1))
    assert all(row.confidence in {"documented", "measured", "assumed", "unknown"} for row in rule_rows(host))
    assert all(model.generation in GENERATIONS for model in book.models.values())


MATCHING = """
openai   gpt-6.1-terra               breakpoint   1024  1     1
openai   gpt-6-luna                  breakpoint   1024  1     1
openai   gpt-5.6-sol                 breakpoint   1024  1     1
openai   gpt-5.6-sol-explicit        breakpoint   1024  1     1
openai   gpt-5.5                     grid         2048  2048  128
openai   gpt-5.4                     grid         1024  1024  128
openai   gpt-5.2                     grid         1024  128   128
openai   gpt-4o-2024-08-06           grid         1024  128   128
gemini   gemini-4-argon              best_effort  4096  1     1
gemini   gemini-3.8-flash            best_effort  4096  1     1
gemini   models/gemini-3.8-flash     best_effort  4096  1     1
gemini   gemini-3.8-flash-explicit   named        4096  1     1
gemini   gemini-2.5-pro              best_effort  2048  1     1
gemini   gemini-2.5-flash            best_effort  270   1     1
gemini   gemini-2.5-flash-explicit   named        2048  1     1
gemini   gemini-3.5-flash            best_effort  92    1     1
gemini   gemini-3.5-flash-explicit   named        4096  1     1
deepseek deepseek-flash              units        64    1     128
xai      grok-4.7                    grid         64    64    1
xai      grok-4.6                    grid         128   128   1
mistral  mistral-large-4-0           grid         16    16    1
qwen     qwen3.8-max                 best_effort  1024  1     1
qwen     qwen3.8-max-explicit        breakpoint   1024  1     1
minimax  MiniMax-M2.7                best_effort  512   1     1
minimax  MiniMax-M2.7-explicit       breakpoint   512   1     1
vllm     meta-llama/Llama-3.3-70B    grid         16    16    1
sglang   anything                    grid         1     1     1
"""


@pytest.mark.parametrize("line", MATCHING.strip().splitlines())
def test_how_each_matches(line: str) -> None:
    host, model, matching, *numbers = line.split()
    found = rules(host, model)
    assert found.matching == matching
    assert [found.minimum_tokens, found.step_tokens, found.reported_step_tokens] == list(map(int, numbers))


PARAMETERS = {
    *("model", "parallel_tool_calls", "format", "effort", "verbosity", "thinking", "tool_choice", "cache_key"),
    *("service_tier", "ttl"),
    "images_detail",
}


@pytest.mark.parametrize("host", OTHERS)
def test_rules_are_in_the_words_that_the_cache_knows(host: str) -> None:
    for found in (row.rules for row in model_rows(BOOK, host)):
        assert found.matching in {"breakpoint", "grid", "units", "named", "best_effort", "none"}
        assert found.surplus_breakpoints in {"refused", "oldest_dropped"}
        assert found.finds in {"lookback", "boundaries"}
        assert set(found.breakpoint_layers) <= {"tools", "system", "messages"}
        assert set(found.accepted_ttls) <= set(found.ttl_s) or not found.breakpoint_layers
        assert found.scope == "organization"
        assert found.keyed_by is not None
        assert found.keyed_by.keys() <= {"tools", "system", "messages"}
        assert {name for names in found.keyed_by.values() for name in names} <= PARAMETERS


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-haiku-4-5"])
@pytest.mark.parametrize("host", ["anthropic", "bedrock", "google-cloud", "foundry", "openrouter"])
def test_claude_everywhere_is_cached_anthropics_way(host: str, model: str) -> None:
    found = rules(host, model)
    assert (found.matching, found.finds, found.surplus_breakpoints) == ("breakpoint", "lookback", "refused")
    assert (found.keyed_by, found.implicit_breakpoint, found.capacity_tokens) == (None, False, None)
    assert (found.step_tokens, found.reported_step_tokens, found.refreshes_on_read) == (1, 1, True)


def test_what_xai_puts_before_a_prompt_counts() -> None:
    late, early = rules("xai", "grok-4.3", "2026-04-30"), rules("xai", "grok-4-fast", "2026-04-29")
    assert (late.hidden.frame_const, late.hidden.tool_prompt) == (177, {})
    assert (early.hidden.frame_const, early.hidden.tool_prompt["auto"]) == (161, 105)
    first, code = rules("xai", "grok-4-fast", "2025-11-18"), rules("xai", "grok-code-fast-1", "2025-11-18")
    assert (first.hidden.frame_const, code.hidden.frame_const, code.hidden.tool_prompt["auto"]) == (106, 193, 85)
    assert rules("xai", "grok-3-mini", "2026-04-29").hidden.tool_prompt["auto"] == 31
    assert rules("xai", "grok-3-mini", "2026-04-30").hidden.tool_prompt == {}


@pytest.mark.parametrize("host", ["groq", "cerebras", "together", "fireworks", "openrouter", "bedrock"])
def test_the_format_of_gpt_oss_counts(host: str) -> None:
    oss = rules(host, "openai.gpt-oss-120b-1:0" if host == "bedrock" else "gpt-oss-120b")
    assert (oss.hidden.frame_const, oss.keeps_thinking) == (62, False)


def test_openai_from_5_6_on() -> None:
    found = rules("openai", "gpt-6.1-sol")
    assert found.ttl_s == {"5m": 1800.0, "1h": 43200.0}
    assert (found.maximum_breakpoints, found.surplus_breakpoints, found.finds) == (4, "oldest_dropped", "boundaries")
    assert (found.implicit_breakpoint, found.breakpoint_layers) == (True, ("system", "messages"))
    assert found.keyed_by is not None
    assert {"format", "effort", "parallel_tool_calls", "cache_key"} <= set(found.keyed_by["tools"])
    assert all("tool_choice" not in names for names in found.keyed_by.values())
    assert rules("openai", "gpt-6.1-sol-explicit").implicit_breakpoint is False
    before = rules("openai", "gpt-5.5")
    assert (before.implicit_breakpoint, before.breakpoint_layers, before.maximum_breakpoints) == (False, (), 0)


def test_idle_lifetime_of_openai_before_5_6() -> None:
    assert rules("openai", "gpt-5.1", "2026-10-01").ttl_s == {"5m": 300.0}
    assert rules("openai", "gpt-5.1", "2026-10-02").ttl_s == {"5m": 1800.0}
    assert rules("openai", "gpt-4o").ttl_s == {"5m": 300.0}


def test_an_object_of_gemini_lives_as_long_as_was_paid_for() -> None:
    found = rules("gemini", "gemini-3.8-flash-explicit")
    assert (found.refreshes_on_read, found.breakpoint_layers, found.maximum_breakpoints) == (
        False,
        ("tools", "system"),
        1,
    )
    assert found.ttl_s == {"5m": 300.0, "1h": 3600.0}
    assert rules("gemini", "gemini-3.8-flash").ttl_s == {}


def test_the_minimum_of_qwen_on_both_sides_of_its_change() -> None:
    assert rules("qwen", "qwen3.8-max", "2026-10-10").minimum_tokens == 256
    assert rules("qwen", "qwen3.8-max", "2026-10-11").minimum_tokens == 1024
    assert rules("qwen", "qwen3.8-max-explicit", "2026-10-10").minimum_tokens == 1024


@pytest.mark.parametrize(("tokens", "read"), [(1170, 1024), (1225, 1152), (2235, 2176)])
def test_gpt_5_nano_reads_what_was_recorded(tokens: int, read: int) -> None:
    """sanand0/datastories, openai-caching: the second of two equal prompts."""
    assert reported_read(tokens, tokens, rules("openai", "gpt-5-nano")) == read


@pytest.mark.parametrize(("host", "tokens", "read"), [("openai", 3662, 2816), ("azure", 3662, 2944)])
def test_blocks_of_gpt_5_mini_end_elsewhere_on_azure(host: str, tokens: int, read: int) -> None:
    assert reported_read(tokens, tokens, rules(host, "gpt-5-mini")) == read


def test_reads_of_openai_in_steps_are_a_reading_for_its_late_models_alone() -> None:
    told = {name: rules("openai", name, openai_reads="grid") for name in ("gpt-5.6-sol", "gpt-6.1-sol", "gpt-4o")}
    steps = {name: (found.step_tokens, found.grid_offset_tokens) for name, found in told.items()}
    assert steps == {"gpt-5.6-sol": (1024, 627), "gpt-6.1-sol": (1024, 627), "gpt-4o": (128, 0)}


@pytest.mark.parametrize(
    ("host", "model", "keeps"),
    [
        ("openai", "gpt-4o", True),
        ("openai", "gpt-5.2", False),
        ("xai", "grok-4.7", False),
        ("deepseek", "deepseek-flash", True),
        ("vllm", "x", True),
        ("mistral", "mistral-large-4", False),
    ],
)
def test_whether_answers_are_cached(host: str, model: str, keeps: bool) -> None:
    assert rules(host, model).keeps_answers is keeps


def test_xais_grid_answers_and_own_text_on_both_sides_of_their_change() -> None:
    told = [rules("xai", "grok-4.20", day) for day in ("2026-04-29", "2026-04-30")]
    assert [(one.step_tokens, one.keeps_answers, one.shared_by_all(True)) for one in told] == [
        (1, True, (0, 148, 174)),
        (64, False, (128, 128, 192)),
    ]


def test_deepseek_kept_every_prefix_until_v4() -> None:
    book = catalogue("deepseek")
    stated = ("matching", "step_tokens", "reported_step_tokens", "keeps_answers", "recomputed_tokens")
    model = book.model("deepseek-v4-pro")
    values = [tuple(book.value(model, name, date(2026, 4, day)) for name in stated) for day in (22, 23)]
    assert values == [("grid", 64, 64, True, 0), ("units", 1, 128, True, 0)]
    assert rules("deepseek", "deepseek-flash").recomputed_tokens == 128


RANGES = {("xai", "grok-4.7"), ("mistral", "mistral-large-4"), ("gemini", "gemini-3.8-flash"), ("qwen", "qwen3.8-max")}


@pytest.mark.parametrize(
    ("host", "model"),
    [
        *(*sorted(RANGES), ("deepseek", "deepseek-flash"), ("gemini", "gemini-3.8-flash-explicit")),
        ("openai", "gpt-6.1-sol"),
    ],
)
def test_which_hosts_state_a_range(host: str, model: str) -> None:
    found = rules(host, model)
    assert (found.read_range is not None) == ((host, model) in RANGES) == bool(found.range_in_words)
    if found.read_range:
        assert "read from nothing to what is shown; cachecost rules --host" in found.range_in_words


@pytest.mark.parametrize("host", ["openai", "azure"])
def test_models_before_gpt_5_6_say_that_machines_differ(host: str) -> None:
    found = rules(host, "gpt-5.2")
    assert found.read_range is None and found.varies_by_machine
    assert found.range_in_words == (
        f"hits on host {host} are a range: a call may come to a machine whose cache has less; "
        f"cachecost rules --host {host} has machine_shares"
    )


def test_shares_of_machines_make_up_all_calls() -> None:
    for host in ("openai", "azure"):
        for row in model_rows(RuleBook(), host):
            for shares in (row.rules.machine_shares, row.rules.first_shares):
                assert list(shares) == ["latest", "previous", "older", "none"]
                assert sum(map(Decimal, map(str, shares.values()))) == 1


def test_a_range_says_in_how_many_calls_it_holds() -> None:
    part = replace(rules("xai", "grok-4.7"), read_range=StatedRange(0.25, 0.9))
    assert "a range: 90% of the calls may read from 25% to what is shown" in part.range_in_words


def test_the_unit_of_deepseek_is_a_switch() -> None:
    assert rules("deepseek", "deepseek-flash", deepseek_unit="launch").reported_step_tokens == 64
    exact = rules("deepseek", "deepseek-flash", deepseek_unit="exact")
    assert (exact.minimum_tokens, exact.reported_step_tokens) == (0, 1)
    assert rules("vllm", "x", deepseek_unit="exact") == rules("vllm", "x", deepseek_unit="exact")
    assert rules("vllm", "x", deepseek_unit="exact").minimum_tokens == 16


@pytest.mark.parametrize("host", ["vllm", "sglang"])
@pytest.mark.parametrize(
    ("name", "generation"),
    [
        ("Qwen/Qwen3-8B", "qwen"),
        ("mistralai/Mistral-Large-4", "mistral"),
        ("openai/gpt-oss-120b", "o200k"),
        ("my-tune", "open"),
        ("qwen/lower-case", "open"),
    ],
)
def test_a_model_of_ones_own_server_is_what_its_user_calls_it(host: str, name: str, generation: str) -> None:
    found = rules(host, name)
    assert (found.model, found.generation, found.recomputed_tokens) == (name, generation, 1)


def test_claude_through_openrouter_is_as_on_anthropic_under_its_own_ids() -> None:
    there, here = rules("anthropic", "claude-opus-5-5"), rules("openrouter", "anthropic/claude-opus-5.5")
    assert (here.model, here.minimum_tokens, here.hidden) == ("claude-opus-5-5", there.minimum_tokens, there.hidden)
    assert rules("openrouter", "anthropic/claude-opus-5-fast").endpoint == "fast"


UNKNOWN = [
    ("openai", "gpt-6.3-sol", "unknown model 'gpt-6.3-sol' on host openai (did you mean 'gpt-6.2-sol'?)"),
    ("openai", "gpt-5.5-explicit", "unknown model 'gpt-5.5-explicit' on host openai (did you mean 'gpt-5.5-pro'?)"),
    (
        "gemini",
        "gemini-3.9-flash",
        "unknown model 'gemini-3.9-flash' on host gemini (did you mean 'gemini-3.8-flash'?)",
    ),
    (
        "gemini",
        "gemini-4-argon-explicit",
        "unknown model 'gemini-4-argon-explicit' on host gemini (did you mean 'gemini-4-argon'?)",
    ),
    ("deepseek", "deepseek-v4", "unknown model 'deepseek-v4' on host deepseek (did you mean 'deepseek-v4-pro'?)"),
    ("xai", "grok-4.8", "unknown model 'grok-4.8' on host xai (did you mean 'grok-4.7'?)"),
    ("mistral", "mistral-large-5", "unknown model 'mistral-large-5' on host mistral (did you mean 'mistral-large-4'?)"),
    ("qwen", "qwen3.9-max", "unknown model 'qwen3.9-max' on host qwen (did you mean 'qwen3.8-max'?)"),
    ("minimax", "MiniMax-M4", "unknown model 'MiniMax-M4' on host minimax (did you mean 'MiniMax-M3'?)"),
    (
        "openrouter",
        "anthropic/claude-opus-6",
        "unknown model 'anthropic/claude-opus-6' on host openrouter (did you mean 'claude-opus-4-6'?)",
    ),
    (
        "openrouter",
        "openai/gpt-6.1-terra",
        "unknown model 'openai/gpt-6.1-terra' on host openrouter (did you mean 'openai/gpt-6.1-sol'?)",
    ),
]


@pytest.mark.parametrize(("host", "model", "text"), UNKNOWN)
def test_an_unknown_model_is_told_with_the_nearest(host: str, model: str, text: str) -> None:
    with pytest.raises(CannotEvaluate) as caught:
        rules(host, model)
    assert str(caught.value) == text


def told(command: str, host: str) -> str:
    result = CliRunner().invoke(getattr(listings, command), ["--host", host], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def over_anthropic() -> set[str]:
    return {host for host in hosts() if catalogue(host).base == "anthropic"}


@pytest.mark.parametrize("host", sorted(hosts()))
def test_rules_and_models_are_told_of_every_host(host: str) -> None:
    head, *lines = told("rules", host).splitlines()
    assert head.split() == ["rule", "model", "value", "from", "to", "seen", "confidence", "source"]
    assert len(lines) > 10
    tables = told("models", host).splitlines()
    assert any(line.split()[:3] == ["model", "from", "to"] for line in tables[:2])
    assert tables[0].startswith("5m and 1h stand for") is (
        host not in {"anthropic", *over_anthropic()} - {"bedrock", "openrouter"}
    )


def test_models_of_which_the_same_is_said_stand_on_one_line() -> None:
    lines = [line for line in told("rules", "gemini").splitlines() if line.startswith("minimum_tokens ")]
    assert lines[0].split()[1:3] == ["*", "4,096"]
    assert any("gemini-2.5-pro, gemini-2.5-flash " in line and " release " in line for line in lines)
    assert " * (explicit) " in told("rules", "gemini")
    assert " * (deepseek_unit=exact) " in told("rules", "deepseek")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1_800.0, "1,800"),
        (0.5, "0.5"),
        (43_200, "43,200"),
        (True, "true"),
        ([], "none"),
        ({}, "none"),
        (["5m", "1h"], "5m, 1h"),
        ({"5m": 300.0, "1h": 3600.0}, "5m 300, 1h 3,600"),
        ({"tools": ["model", "format"]}, "tools (model, format)"),
    ],
)
def test_values_in_words(value: object, words: str) -> None:
    assert value_words(value) == words
