"""The minimum is found to the token, whatever it is believed to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from probe_bench import SimulatedSender, tried

from tools.probes import minimum

MODELS = ("claude-opus-5-5", "claude-sonnet-4-6", "claude-opus-4-7", "claude-haiku-4-5")
"""Believed to need 512, 1,024, 2,048 and 4,096 tokens."""


@pytest.mark.parametrize(("model", "counter"), [*((model, "bytes") for model in MODELS), (MODELS[1], "tiktoken")])
@pytest.mark.parametrize("tokens", [512, 1024, 1025, 4096])
def test_it_is_found_exactly(model: str, tokens: int, counter: str) -> None:
    run = tried("minimum", model=model, tokens=counter, minimum_tokens=tokens)
    found = run["minimum"]
    assert found.value == tokens
    assert found.explanation.startswith(f"{tokens} tokens are cached (read again: {tokens}), {tokens - 1} are not; ")
    cached = {taken.usage.write for taken in found.calls}
    tail = found.calls[-1].usage.input_tokens
    uncached = {taken.usage.total_input - tail for taken in found.calls if not taken.usage.write + taken.usage.read}
    assert tokens in cached
    assert tokens - 1 in uncached


def test_what_is_as_believed_takes_four_calls() -> None:
    assert len(tried("minimum")["minimum"].calls) == 4


def test_a_minimum_beyond_the_longest_try_is_not_settled() -> None:
    longest = minimum.LONGEST
    found = tried("minimum", minimum_tokens=5000)["minimum"]
    assert found.value is None
    assert found.explanation.startswith("nothing was cached, not even of ")
    assert max(taken.usage.total_input for taken in found.calls) >= longest


def test_a_count_that_is_off_by_a_constant_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = SimulatedSender.count

    async def count(self: SimulatedSender, body: Mapping[str, Any]) -> int:
        return await plain(self, body) + 7

    monkeypatch.setattr(SimulatedSender, "count", count)
    assert tried("minimum", minimum_tokens=700)["minimum"].value == 700


def test_an_entry_that_is_written_and_never_read_proves_nothing() -> None:
    lag = {"visibility_lag_s": 99.0, "visibility_lag_probability": 1.0}
    found = tried("minimum", assumptions=lag)["minimum"]
    assert (found.value, found.explanation[:42]) == (None, "1024 tokens are cached (read again: 0), 10")


def test_a_larger_minimum_than_believed_leaves_the_others_out() -> None:
    run = tried(minimum_tokens=2048)
    assert run["minimum"].value == 2048
    assert {finding.explanation for finding in run.findings[1:]} == {
        "not run: a prefix needs 2048 tokens and the prompts were priced for 1024; "
        "run again with --rules FILE and the file written"
    }
    assert not any(finding.calls for finding in run.findings[1:])


def test_a_smaller_minimum_than_believed_leaves_nothing_out() -> None:
    run = tried(minimum_tokens=512)
    assert run["minimum"].value == 512
    assert all(finding.calls for finding in run.findings)


@pytest.mark.parametrize("probe", ["ttl_in_key", "tool_choice_invalidation", "lookback", "shallow_breakpoints", "ttl"])
def test_without_the_minimum_a_larger_one_is_guessed(probe: str) -> None:
    found = tried(probe, minimum_tokens=4096)[probe]
    assert (found.value, found.explanation) == (
        None,
        "a fresh prefix of more than 1024 tokens was not cached: run the probe minimum first, "
        "then run again with --rules FILE",
    )
