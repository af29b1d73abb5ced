"""Scenario files: what they may say, and every fault at once in the user's own names."""

import os
import re
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cachecost.base import yaml_text
from cachecost.base.errors import InputError
from cachecost.conversations.model import Conversation, Human, Reply, write
from cachecost.prompts.blocks import NOTHING, Part, given_block
from cachecost.prompts.request import text_block
from cachecost.scenario import (
    Scenario,
    ScenarioConversations,
    explain_defaults,
    from_mapping,
    head_parts,
    load,
    load_conversations,
    schema,
)
from cachecost.scenario.models import Head, PublishedFigureSpec, SystemHead, ToolsHead
from slow_cases import examples


def only(conversations: ScenarioConversations) -> Conversation:
    """The one conversation of a scenario that replays one."""
    (conversation,) = conversations.conversations
    return conversation


WHOLE = """\
# yaml-language-server: $schema=scenario.schema.json
format: 1
name: answer-inquiry
question: What does a question to the assistant cost?
as_of: 2026-03-07
host: anthropic
model: claude-opus-4-6
tokens: tiktoken
conversation:
  recording: talk.jsonl
  head: {tools: {count: 24, tokens: 21_000}, system: {tokens: 6_000}}
strategies:
  - progressive
  - name: structured output, no tools
    breakpoints: [last_tool, last_system, automatic]
    inquiry: {through: structured_output, tools: none}
  - name: answer_inquiry
    breakpoints: [last_tool, last_system, automatic]
    inquiry: {through: answer_tool, tool_choice: forced, retry_rate: 0.05}
    ttl: 5m
compare_to: structured output, no tools
sweep: {conversation.head.tools.tokens: [4_000, 21_000, 40_000]}
budget: {strategy: answer_inquiry, max_cost_usd: 40, max_regression: 5%}
"""

SMALL = """\
format: 1
name: small
model: claude-opus-4-6
conversation:
  synthetic: {turns: 2}
strategies: [progressive, none]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the recording of a conversation without tools and system prompt."""
    words = tuple(text_block(role, role) for role in ("user", "assistant"))
    events = (Human(0.0, words[:1]), Reply(1.0, words[1:]), Human(9.0, words[:1]), Reply(10.0, words[1:]))
    params = {"thinking": {"type": "enabled", "budget_tokens": 4096}, "speed": "standard"}
    write(Conversation("conversation", events, "claude-opus-4-6", params=params), tmp_path / "talk.jsonl")
    return tmp_path


def loaded(folder: Path, text: str, *sets: str) -> Scenario:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path, sets)


def faults(folder: Path, text: str, *sets: str) -> list[str]:
    """The faults of a scenario, without the folder that the test runs in."""
    with pytest.raises(InputError) as raised:
        loaded(folder, text, *sets)
    return [str(fault).replace(f"{folder}/", "") for fault in raised.value.faults]


# ------------------------------------------------------------------------------- what a file says


def test_the_whole_scenario(folder: Path) -> None:
    scenario = loaded(folder, WHOLE)
    assert (scenario.name, scenario.model, scenario.tokens) == ("answer-inquiry", "claude-opus-4-6", "tiktoken")
    assert scenario.as_of == date(2026, 3, 7)
    assert [strategy.name for strategy in scenario.strategies] == [
        "progressive",
        "structured output, no tools",
        "answer_inquiry",
    ]
    assert scenario.first == "structured output, no tools"
    assert scenario.sweep == {"conversation.head.tools.tokens": [4_000, 21_000, 40_000]}
    (budget,) = scenario.budget
    assert (budget.strategy, budget.max_cost_usd, budget.max_regression) == ("answer_inquiry", 40, Decimal("0.05"))
    assert [(name, variant.as_of) for name, variant in scenario.all_variants] == [("", date(2026, 3, 7))]


def test_dollars_are_the_digits_that_were_written(folder: Path) -> None:
    scenario = loaded(folder, SMALL + "budget: {max_cost_usd: 0.1000000000000000055511151231257827}\n")
    assert scenario.budget[0].max_cost_usd == Decimal("0.1000000000000000055511151231257827")


def test_what_is_left_out_is_the_default(folder: Path) -> None:
    scenario = loaded(folder, SMALL)
    assert (scenario.host, scenario.as_of, scenario.tokens, scenario.first) == ("anthropic", None, None, "progressive")
    assert (scenario.rules, scenario.published_figures, scenario.budget, scenario.sweep) == ({}, [], [], {})


def test_the_printed_defaults_are_the_defaults(folder: Path) -> None:
    text = explain_defaults() + "".join(line + "\n" for line in SMALL.splitlines())
    assert loaded(folder, text).model_dump() == loaded(folder, SMALL).model_dump()


def test_the_printed_defaults_name_every_key_with_its_meaning() -> None:
    lines = explain_defaults().splitlines()
    for line in ("as_of: shipped", 'host: "anthropic"', "tokens: null", "budget: []", "# model:  must be given"):
        assert line in lines
    bare = [line.strip("# ") for line in lines]
    for name, schema_of in schema()["$defs"].items():
        for key, described in schema_of.get("properties", {}).items():
            assert any(line.startswith(f"{key}:") for line in bare), f"{name}.{key}"
            assert described.get("description") or key == "description", f"{name}.{key} has no docstring"


# --------------------------------------------------------------------------------- every fault at once

SIX_FAULTS = """\
format: 1
name: mine
model: claude-opus-4-6
as_of: 2026-13-07
conversation:
  synthetic: {turns: ten}
  hed: {tools: {tokens: 1}}

strategies:
  - progressive
  - name: mine

    # two lines of comment
    # stand here
    breakpoints: progresive
    ttl: 5m
compare_to: min
compare_to: mine

budget:
  # the limit
  max_cost: 40
"""


def test_six_faults_at_once(folder: Path) -> None:
    found = faults(folder, SIX_FAULTS)
    presets = found[3].partition("one of ")[2].partition("; got")[0]
    assert presets.startswith("automatic, base, claude-code, none, progressive, system-only … (")
    assert found == [
        "mine.yaml:4:1 as_of: expected a day like 2026-03-07, or shipped; got '2026-13-07'",
        "mine.yaml:6:15 conversation.synthetic.turns: expected a whole number; got 'ten'",
        "mine.yaml:7:3 conversation.hed: unknown key (did you mean 'head'?)",
        f"mine.yaml:15:5 strategies[1].breakpoints: expected one of {presets}; got 'progresive' "
        "(did you mean 'progressive'?)",
        "mine.yaml:17:1 compare_to: expected one of mine, progressive; got 'min' (did you mean 'mine'?)",
        "mine.yaml:18:1 compare_to: given twice; first in line 17",
        "mine.yaml:22:3 budget.max_cost: unknown key (did you mean 'max_cost_usd'?)",
    ]


SEEN, UNSEEN = True, False
"""Whether an editor that knows the schema sees the fault, too: none between keys, none on the disk."""

TOKENS = "bytes, calibrated, count_tokens, ctok, native, tiktoken"
FOLDER = "expected letters, digits, '-', '_' and '.' (it names a folder)"
PRICE = "expected prices of read, write_5m, write_1h, input, output, joined by ' - ' or ' + '"
TALK = "synthetic: {turns: 2}"
BOTH = "[progressive, none]"

REPLACED = [
    ("format: 1", "format: 2", "1:1 format: expected 1; got 2", SEEN),
    ("format: 1\n", "", "1:1 format: expected 1; got nothing", SEEN),
    ("small", "../up", f"2:1 name: {FOLDER}; got '../up'", SEEN),
    ("small", "7", f"2:1 name: {FOLDER}; got 7", SEEN),
    ("model: claude-opus-4-6\n", "", "1:1 model: expected text; got nothing", SEEN),
    (TALK, "synthetic: {turns: 0}", "5:15 conversation.synthetic.turns: expected at least 1; got 0", SEEN),
    (TALK, "synthetic: {turns: 2.0}", "5:15 conversation.synthetic.turns: expected a whole number; got 2.0", UNSEEN),
    (TALK, 'synthetic: {turns: "2"}', "5:15 conversation.synthetic.turns: expected a whole number; got '2'", UNSEEN),
    (
        TALK,
        "synthetic: {calls: [9, 2]}",
        "5:15 conversation.synthetic.calls: expected [low, high], low first, both from 0; got [9, 2]",
        UNSEEN,
    ),
    (
        TALK,
        "synthetic: {pauses: {trun: 9}}",
        "5:24 conversation.synthetic.pauses.trun: unknown key (did you mean 'turn'?)",
        SEEN,
    ),
    (
        TALK,
        "synthetic: {inquiries: {rate: 1.5}}",
        "5:27 conversation.synthetic.inquiries.rate: expected at most 1.0; got 1.5",
        SEEN,
    ),
    (TALK, "turns: 2", "4:1 conversation: expected recording, synthetic or command; got none", UNSEEN),
    (
        TALK,
        "synthetic: {}\n  recording: talk.jsonl",
        "4:1 conversation: expected recording, synthetic or command; got recording and synthetic",
        UNSEEN,
    ),
    (
        TALK,
        "recording: tlak.jsonl",
        "5:3 conversation.recording: expected a file; got 'tlak.jsonl', and there is no tlak.jsonl",
        UNSEEN,
    ),
    (
        TALK,
        "recording: folder",
        "5:3 conversation.recording: expected a file; got 'folder', and there is no folder",
        UNSEEN,
    ),
    (
        TALK,
        f"{TALK}\n  head: {{tools: {{count: 3, tokens: 2}}}}",
        "6:10 conversation.head.tools: expected at least a token a tool; got 2 for 3 tools",
        UNSEEN,
    ),
    (
        TALK,
        f"{TALK}\n  head: {{system: {{tokens: 3, blocks: [3]}}}}",
        "6:10 conversation.head.system: expected tokens or blocks; got tokens and blocks",
        UNSEEN,
    ),
    (
        TALK,
        f"{TALK}\n  head: {{system: {{blocks: []}}}}",
        "6:19 conversation.head.system.blocks: expected a list of at least 1; got a list of 0",
        SEEN,
    ),
    (
        TALK,
        f"{TALK}\n  head: {{system: {{blocks: [3, x]}}}}",
        "6:31 conversation.head.system.blocks[1]: expected a whole number; got 'x'",
        SEEN,
    ),
    (
        TALK,
        f"{TALK}\n  params: {{thinking: {{type: maybe}}}}",
        "6:23 conversation.params.thinking.type: expected one of adaptive, disabled, enabled; got 'maybe'",
        SEEN,
    ),
    (BOTH, "progressive", "6:1 strategies: expected a list; got 'progressive'", SEEN),
    (BOTH, "[]", "6:1 strategies: expected a list of at least 1; got a list of 0", SEEN),
    (
        BOTH,
        "[none, none]",
        "6:20 strategies[1]: expected a name of its own; got 'none', as strategies[0]",
        UNSEEN,
    ),
    (
        BOTH,
        "[none, {name: none, breakpoints: []}]",
        "6:21 strategies[1].name: expected a name of its own; got 'none', as strategies[0]",
        UNSEEN,
    ),
    (
        BOTH,
        "[none, {preset: none}]",
        "6:21 strategies[1].preset: expected a name of its own; got 'none', as strategies[0]",
        UNSEEN,
    ),
    (
        BOTH,
        "[{name: x, breakpoints: [{last_n: {n: 2, rol: human}}]}]",
        "6:54 strategies[0].breakpoints[0].last_n.rol: unknown key (did you mean 'role'?)",
        SEEN,
    ),
    (
        BOTH,
        "[{name: x, inquiry: {retry_rate: 5%}}]",
        "6:34 strategies[0].inquiry.retry_rate: expected a number; got '5%'",
        SEEN,
    ),
]

APPENDED = [
    ("tokens: bites", f"7:1 tokens: expected one of {TOKENS}; got 'bites' (did you mean 'bytes'?)", SEEN),
    ("as_of: 2026-02-30", "7:1 as_of: expected a day like 2026-03-07, or shipped; got '2026-02-30'", UNSEEN),
    (
        "budget: {}",
        "7:1 budget: expected a limit: max_breakpoints, max_cost_per_call_usd, "
        "max_cost_per_inquiry_usd, max_cost_per_turn_usd, "
        "max_cost_usd, max_regression, min_cache_hit_rate, min_lookback_margin, no_write_never_read or "
        "prefix_stable; got none",
        UNSEEN,
    ),
    (
        'budget: {max_cost_usd: "40"}',
        "7:10 budget.max_cost_usd: expected dollars, a number from 0; got '40'",
        UNSEEN,
    ),
    ("budget: {max_cost_usd: -1}", "7:10 budget.max_cost_usd: expected dollars, a number from 0; got -1", SEEN),
    ("budget: {max_cost_usd: true}", "7:10 budget.max_cost_usd: expected dollars, a number from 0; got true", SEEN),
    ("budget: {max_regression: 0.05}", "7:10 budget.max_regression: expected a percentage like 5%; got 0.05", SEEN),
    ("budget: {max_regression: 5}", "7:10 budget.max_regression: expected a percentage like 5%; got 5", SEEN),
    (
        "budget: [{max_regression: 5%}, {max_breakpointz: 4}]",
        "7:33 budget[1].max_breakpointz: unknown key (did you mean 'max_breakpoints'?)",
        SEEN,
    ),
    (
        "budget: [{strategy: non, max_regression: 5%}]",
        "7:11 budget[0].strategy: expected one of none, progressive; got 'non' (did you mean 'none'?)",
        UNSEEN,
    ),
    ("prices: own.toml", "7:1 prices: expected a file; got 'own.toml', and there is no own.toml", UNSEEN),
    (
        "rules: {lookback_runs: no}",
        "7:9 rules.lookback_runs: expected one of by_date, collapsed, counted; got 'no'",
        SEEN,
    ),
    (
        "published_figures: [{source: a, says: $1, tokens: 5, price: write_5m*2}]",
        f"7:54 published_figures[0].price: {PRICE}; got 'write_5m*2'",
        SEEN,
    ),
    ("variants: [{name: a, model: 5}]", "7:22 variants[0].model: expected text; got 5", SEEN),
    ("variants: [{name: a, modle: x}]", "7:22 variants[0].modle: unknown key (did you mean 'model'?)", SEEN),
    (
        "variants: [{name: a, as_of: shiped}]",
        "7:22 variants[0].as_of: expected a day like 2026-03-07, or shipped; got 'shiped'",
        UNSEEN,
    ),
    (
        "variants: [{name: a, rules: {shallow_breakpoints: x}}]",
        "7:30 variants[0].rules.shallow_breakpoints: expected one of rewrite, refresh, ignore; got 'x'",
        SEEN,
    ),
    (
        "variants: [{name: a, conversation: {synthetic: {turn: 1}}}]",
        "7:49 variants[0].conversation.synthetic.turn: unknown key (did you mean 'turns'?)",
        UNSEEN,
    ),
    (
        "variants: [{name: a}, {name: a}]",
        "7:24 variants[1].name: expected a name of its own; got 'a', as variants[0]",
        UNSEEN,
    ),
    ("variants: [{as_of: shipped}]", "7:12 variants[0].name: expected text; got nothing", SEEN),
    ("sweep: {model: []}", "7:9 sweep.model: expected a list of at least 1; got a list of 0", SEEN),
    ("sweep: {model: [claude-opus-4-7, 5]}", "7:34 sweep.model[1]: model: expected text; got 5", UNSEEN),
    ("sweep: {modle: [a]}", "7:17 sweep.modle[0]: modle: unknown key (did you mean 'model'?)", UNSEEN),
    (
        "sweep: {strategies.2.ttl: [5m, 1h]}",
        "7:9 sweep.strategies.2.ttl: strategies: expected the number of an item, 0 to 1; got '2'",
        UNSEEN,
    ),
]
ONE_FAULT = [(SMALL.replace(old, new, 1), fault, seen) for old, new, fault, seen in REPLACED] + [
    (f"{SMALL}{line}\n", fault, seen) for line, fault, seen in APPENDED
]


@pytest.mark.parametrize(("text", "fault", "seen"), ONE_FAULT)
def test_one_fault(folder: Path, text: str, fault: str, seen: bool) -> None:
    (folder / "folder").mkdir()
    assert faults(folder, text) == [f"mine.yaml:{fault}"]
    assert valid(yaml_text.parse(text, "x").value) is not seen


def test_an_unknown_rule_is_told_the_near_one(folder: Path) -> None:
    (found,) = faults(folder, SMALL + "rules: {ttl_in_keys: true}\n")
    assert found.startswith("mine.yaml:7:9 rules.ttl_in_keys: unknown rule (did you mean 'ttl_in_key'?)")


def test_a_list_at_the_top(folder: Path) -> None:
    assert faults(folder, "- a\n") == ["mine.yaml:1:1 expected a mapping; got a list of 1"]
    assert faults(folder, "text\n") == ["mine.yaml:1:1 expected a mapping; got text"]


def test_a_key_that_is_like_none_is_told_all_there_are(folder: Path) -> None:
    (found,) = faults(folder, SMALL + "zzz: 1\n")
    assert found.startswith("mine.yaml:7:1 zzz: unknown key; expected one of as_of, assumptions, budget, compare_to, ")


def test_files_are_looked_for_from_the_folder_of_the_scenario(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = SMALL.replace("synthetic: {turns: 2}", "recording: talk.jsonl")
    absolute = text.replace("talk.jsonl", str(folder / "talk.jsonl"))
    monkeypatch.chdir(folder.parent)
    for written in (text, absolute):
        scenario = loaded(folder, written)
        assert len(only(load_conversations(scenario, folder)).events) == 4
    (folder / "in").mkdir()
    (fault,) = faults(folder / "in", text)
    assert (
        fault == "mine.yaml:5:3 conversation.recording: expected a file; got 'talk.jsonl', and there is no talk.jsonl"
    )


# ---------------------------------------------------------------------------------------------- --set


def test_sets_are_put_over_the_file(folder: Path) -> None:
    sets = (
        "conversation.head.tools.tokens=4_000",
        "strategies.2.ttl=1h",
        "as_of=shipped",
        "host=",
        "budget.max_cost_usd=2",
    )
    scenario = loaded(folder, WHOLE, *sets[:3], sets[4])
    assert scenario.conversation.head.tools == ToolsHead(tokens=4_000, count=24)
    assert (scenario.strategies[2].ttl, scenario.as_of, scenario.budget[0].max_cost_usd) == ("1h", None, 2)
    assert faults(folder, WHOLE, sets[3]) == ["--set host=: host: expected text; got nothing"]


def test_a_bare_preset_opens_to_take_an_option(folder: Path) -> None:
    scenario = loaded(folder, SMALL, "strategies.0.ttl=1h")
    assert (scenario.strategies[0].name, scenario.strategies[0].ttl) == ("progressive", "1h")
    swept = loaded(folder, SMALL + "sweep: {strategies.0.ttl: [5m, 1h]}\n")
    assert swept.sweep == {"strategies.0.ttl": ["5m", "1h"]}


def test_a_whole_list_can_be_set(folder: Path) -> None:
    assert [one.name for one in loaded(folder, SMALL, "strategies=[system-only]").strategies] == ["system-only"]


def test_faults_of_sets_name_the_set_and_come_last(folder: Path) -> None:
    sets = (
        "a.b",
        "strategies.2.ttl=5m",
        "name.x=1",
        "=1",
        "model=[",
        "tokens=bites",
        "conversation.synthetic.turns={a: 1, a: 2}",
    )
    assert faults(folder, SMALL + "compare_to: x\n", *sets) == [
        "mine.yaml:7:1 compare_to: expected one of none, progressive; got 'x'",
        "--set a.b: expected a.b=VALUE",
        "--set strategies.2.ttl=5m: strategies: expected the number of an item, 0 to 1; got '2'",
        "--set name.x=1: name: is the single value 'small'; nothing in it is named 'x'",
        "--set =1: expected words between dots",
        "--set model=[: not valid YAML: expected the node content, but found '<stream end>'",
        "--set conversation.synthetic.turns={a: 1, a: 2}: a: given twice; first in line 1",
        f"--set tokens=bites: tokens: expected one of {TOKENS}; got 'bites' (did you mean 'bytes'?)",
        "--set conversation.synthetic.turns={a: 1, a: 2}: conversation.synthetic.turns: "
        "expected a whole number; got a mapping",
    ]


# ------------------------------------------------------------------------------------------- variants

VARIANTS = """\
rules: {shallow_breakpoints: ignore}
variants:
  - {name: shipped day, as_of: shipped}
  - {name: other model, model: claude-sonnet-4-5, rules: {ttl_in_key: true}}
  - name: recorded
    tokens: bytes
    conversation: {recording: talk.jsonl, turns: 1, head: {system: {blocks: [10, 20]}}}
"""


def test_variants_are_the_scenario_with_their_keys_over_it(folder: Path) -> None:
    small = SMALL.replace("strategies:", "  head: {tools: {count: 2, tokens: 9}, system: {tokens: 8}}\nstrategies:")
    scenario = loaded(folder, small + "as_of: 2026-03-07\n" + VARIANTS)
    (_, base), (_, shipped), (_, model), (last, recorded) = scenario.all_variants
    assert base is scenario
    assert (shipped.as_of, shipped.model, shipped.rules) == (None, scenario.model, {"shallow_breakpoints": "ignore"})
    assert (model.as_of, model.model) == (date(2026, 3, 7), "claude-sonnet-4-5")
    assert model.rules == {"shallow_breakpoints": "ignore", "ttl_in_key": True}
    assert (last, recorded.tokens, recorded.conversation.turns) == ("recorded", "bytes", 1)
    assert recorded.conversation.recording == "talk.jsonl"
    assert recorded.conversation.synthetic is None
    assert recorded.conversation.head.tools == scenario.conversation.head.tools
    assert recorded.conversation.head.system == SystemHead(blocks=[10, 20])
    assert [variant.variants for _, variant in scenario.all_variants[1:]] == [[], [], []]


def test_a_fault_of_the_scenario_is_not_told_again_by_each_variant(folder: Path) -> None:
    text = SMALL.replace("[progressive, none]", "[progresive]") + "compare_to: x\n" + VARIANTS
    assert [fault.partition(" ")[0] for fault in faults(folder, text)] == ["mine.yaml:6:14", "mine.yaml:7:1"]


def test_from_mapping_is_load_without_a_file(folder: Path) -> None:
    value = yaml_text.parse(SMALL, "x").value
    assert from_mapping(value, folder).model_dump() == loaded(folder, SMALL).model_dump()
    with pytest.raises(InputError, match=r"^scenario host: expected text; got 5$"):
        from_mapping({**value, "host": 5}, folder)


# --------------------------------------------------------------------------------------------- schema


def valid(value: Any) -> bool:
    return jsonschema.Draft202012Validator(schema()).is_valid(value)


def test_the_schema_is_one_and_knows_the_whole_scenario() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert valid(yaml_text.parse(WHOLE, "x").value)
    assert valid(yaml_text.parse(SMALL + VARIANTS, "x").value)


def test_editors_that_read_underscored_numbers_as_text_see_no_fault() -> None:
    assert valid(yaml_text.parse(re.sub(r"\b(\d+_\d+)\b", r'"\1"', WHOLE), "x").value)
    assert not valid(yaml_text.parse(WHOLE.replace("21_000", '"many"', 1), "x").value)


# --------------------------------------------------------------------------------------- conversation


def head(text: str) -> Head:
    return Head.model_validate(yaml_text.parse(text, "x").value)


def tokens(part: Part) -> list[int | None]:
    return [block.tokens for block in part.blocks]


@given(st.integers(1, 60), st.integers(0, 100_000))
@example(count=24, more=21_000 - 24)
@example(count=1, more=0)
def test_tools_sum_exactly_to_the_tokens_of_the_head(count: int, more: int) -> None:
    tools, system = head_parts(head(f"{{tools: {{count: {count}, tokens: {count + more}}}}}"))
    sizes = [size or 0 for size in tokens(tools)]
    assert (len(sizes), sum(sizes)) == (count, count + more)
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= 1
    assert system is NOTHING
    assert len({block.digest for block in tools.blocks}) == count


def test_a_head_is_blocks_of_tools_and_system() -> None:
    tools, system = head_parts(head("{tools: {count: 2, tokens: 5}, system: {blocks: [7, 7, 9]}}"))
    assert (tokens(tools), tokens(system)) == ([3, 2], [7, 7, 9])
    assert {(block.kind, block.role) for block in tools.blocks} == {("tool", "")}
    assert {(block.kind, block.role) for block in system.blocks} == {("text", "system")}
    assert len({block.digest for block in system.blocks}) == 3
    assert tokens(head_parts(head("{system: {tokens: 6}}"))[1]) == [6]
    assert head_parts(Head()) == (NOTHING, NOTHING)


def test_the_same_head_is_the_same_prefix_and_another_size_another() -> None:
    digests = [head_parts(head(f"{{tools: {{count: 3, tokens: {size}}}}}"))[0].digest for size in (9, 9, 10)]
    assert digests[0] == digests[1] != digests[2]


def test_a_recording_gets_the_head_it_lacks_and_the_params(folder: Path) -> None:
    text = WHOLE.replace("  head:", "  params: {speed: fast, output_config: {effort: low}}\n  head:")
    conversation = only(load_conversations(loaded(folder, text), folder))
    assert (sum(size or 0 for size in tokens(conversation.tools)), len(conversation.tools.blocks)) == (21_000, 24)
    assert tokens(conversation.system) == [6_000]
    assert conversation.params == {
        "thinking": {"type": "enabled", "budget_tokens": 4096},
        "speed": "fast",
        "output_config": {"effort": "low"},
    }


def test_a_head_over_that_of_the_recording_is_a_fault(folder: Path) -> None:
    tools = Part((given_block("tool", "", "t", 5),))
    plain = loaded(folder, SMALL.replace("synthetic: {turns: 2}", "recording: talk.jsonl"))
    events = only(load_conversations(plain, folder)).events
    write(Conversation("conversation", events, tools=tools), folder / "talk.jsonl")
    scenario = loaded(folder, WHOLE)
    with pytest.raises(InputError) as raised:
        only(load_conversations(scenario, folder))
    expected = "mine.yaml:11:10 conversation.head.tools: expected nothing, as the recording has its own; got 24 blocks"
    assert str(raised.value).endswith(expected)
    bare = WHOLE.replace("tools: {count: 24, tokens: 21_000}, ", "").replace("sweep", "# sweep")
    assert tokens(only(load_conversations(loaded(folder, bare), folder)).tools) == [5]


@pytest.mark.parametrize(("turns", "events"), [("1", 2), ("2", 4), ("3", 4), ("null", 4)])
def test_only_the_first_turns(folder: Path, turns: str, events: int) -> None:
    text = SMALL.replace("synthetic: {turns: 2}", f"recording: talk.jsonl\n  turns: {turns}")
    assert len(only(load_conversations(loaded(folder, text), folder)).events) == events


def test_a_synthetic_conversation_is_the_generators(folder: Path) -> None:
    text = "synthetic: {seed: 33, turns: 3, tools: 2, sizes: {human: [10, 20]}, inquiries: {rate: 1.0}}"
    scenario = loaded(folder, SMALL.replace("synthetic: {turns: 2}", text))
    made = only(load_conversations(scenario, folder))
    assert (made.name, made.model, len(made.inquiries) > 0) == ("small", "claude-opus-4-6", True)
    humans = [event for event in made.events if isinstance(event, Human)]
    assert len(humans) == 3
    assert all(10 <= (event.blocks[0].tokens or 0) <= 20 for event in humans)


# --------------------------------------------------------------------------------------------- claims

PRICES = [
    ("write_5m", [(1, "write_5m")]),
    ("write_5m - read", [(1, "write_5m"), (-1, "read")]),
    ("input + output - read", [(1, "input"), (1, "output"), (-1, "read")]),
]


@pytest.mark.parametrize(("price", "terms"), PRICES)
def test_the_price_of_a_claim(price: str, terms: list[tuple[int, str]]) -> None:
    assert PublishedFigureSpec(source="s", says="$1", tokens=95_000, price=price).terms == terms


# ----------------------------------------------------------------------------------------- robustness


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, len(WHOLE) - 1),
    st.integers(0, 12),
    st.sampled_from(["", ":", "\n", "  ", "[", "}", "- ", "'", "9", "&a ", "!x "]),
)
def test_a_damaged_file_is_faults_with_places_or_a_scenario(folder: Path, start: int, length: int, new: str) -> None:
    text = WHOLE[:start] + new + WHOLE[start + length :]
    try:
        loaded(folder, text)
    except InputError as error:
        assert error.faults
        assert all(fault.line and fault.column and fault.message for fault in error.faults)


@pytest.mark.slow
def test_faults_and_schema_are_the_same_under_any_hash_seed(folder: Path) -> None:
    (folder / "mine.yaml").write_text(SIX_FAULTS, encoding="utf-8")
    code = (
        "import sys; from cachecost.scenario import *; print(schema()); print(explain_defaults())\n"
        "try: load(sys.argv[1])\nexcept Exception as e: print(e)"
    )
    outs = {
        subprocess.run(
            [sys.executable, "-c", code, str(folder / "mine.yaml")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outs) == 1
    assert b"did you mean 'head'?" in outs.pop()
