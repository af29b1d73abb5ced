"""The code that `optimize --emit` writes for a client places what the strategy places, on any request."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from random_logs import logs

from cachecost.analysis.optimum.online_rule import MOVING, STATIC, TTL_PAIRS, OnlineRule, is_always_legal
from cachecost.prompts.intake import Intake
from cachecost.strategies.placements import ThreadIndex, View
from cachecost.views.optimum.plan_folder import client_code
from slow_cases import examples

ALL = [OnlineRule(static, moving, ttls) for static in STATIC for moving in MOVING for ttls in TTL_PAIRS]
RULES = [rule for rule in ALL if is_always_legal(rule)]


@settings(max_examples=examples(60))
@given(logs(), st.sampled_from(RULES))
def test_the_code_places_what_the_strategy_places(rows: list[dict[str, Any]], rule: OnlineRule) -> None:
    module: dict[str, Any] = {}
    exec(client_code(rule), module)
    intake = Intake()
    for row in rows:
        if any(message["content"] == "" for message in row["request"]["messages"]):
            continue  # the API refuses an empty message
        sent = intake.body(row["request"])
        view = View(sent.thread, sent.tools, sent.system, ThreadIndex())
        expected = [(*one.block_key, one.ttl) for one in rule.placement.place(view).breakpoints]
        placed = intake.body(module["place_breakpoints"](row["request"]))
        assert placed.automatic is None
        assert placed.thread is sent.thread
        assert (placed.tools.digest, placed.system.digest) == (sent.tools.digest, sent.system.digest)
        assert [(*one.block_key, one.ttl) for one in placed.breakpoints] == expected
