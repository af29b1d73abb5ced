"""The row of `replay --json`."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal

from fake_results import row

from cachecost.ledger.rows import Cost
from cachecost.providers.usage import Usage
from cachecost.views.replay.call_rows import call_object

HEAVY = ("pandas", "numpy", "matplotlib", "rich", "jinja2", "pydantic", "tiktoken", "csv")


def test_a_call_is_what_the_contract_says() -> None:
    usage = Usage(input_tokens=3, read=100, write_5m=20, write_1h=5, output_tokens=7)
    found = call_object(row("as recorded", 4, usage, cost=Cost(read=Decimal("0.0000005"), output=Decimal("0.10"))))
    assert json.dumps(found) == json.dumps(
        {
            "format": 1,
            "call": 4,
            "timestamp": "2026-03-06T21:01:20+00:00",
            "model": "claude-opus-4-6",
            "strategy": "as recorded",
            "usage": {
                "input_tokens": 3,
                "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 25,
                "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 5},
                "output_tokens": 7,
            },
            "cost_usd": "0.1000005",
            "cause": "hit",
            "output_is_recorded": True,
            "purpose": "main",
            "turn": 0,
            "inquiry": None,
            "session": "",
            "project": "",
            "agent": "",
            "file": "",
            "line": None,
        }
    )


def test_a_refused_call_has_its_error_and_no_usage() -> None:
    error = "A maximum of 4 blocks with cache_control may be provided. Found 5."
    found = call_object(row("a", 1, Usage(), error=error, cause=None))
    assert found["error"] == {"type": "invalid_request_error", "message": error}
    assert "usage" not in found
    assert (found["cost_usd"], found["cause"]) == ("0", None)


def test_a_call_that_could_not_be_evaluated_says_so() -> None:
    found = call_object(row("a", 1, Usage(), error="unknown model 'x'", error_type="not_evaluated"))
    assert found["error"] == {"type": "not_evaluated", "message": "unknown model 'x'"}


def test_output_that_was_not_recorded_is_said() -> None:
    assert call_object(row("a", 1, Usage(), output_is_recorded=False))["output_is_recorded"] is False


def test_the_module_imports_nothing_heavy() -> None:
    code = f"import sys, cachecost.views.replay.call_rows; print([name for name in {HEAVY} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
