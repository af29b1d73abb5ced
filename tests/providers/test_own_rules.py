"""A user's rules file: what it says goes over the shipped rules, from its day on."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from cachecost.base.errors import InputError
from cachecost.providers.rules import RuleBook, own_rules

GOOD = """
[data]
host = "anthropic"
date = 2026-11-22
[assumptions]
ttl_in_key = true
[[minimum_tokens]]
model = "claude-opus-4-6"
value = 2000
from = 2026-11-22
[[minimum_tokens]]
model = "claude-opus-4-6"
value = 3000
from = 2026-06-01
[[evidence]]
probe = "ttl_in_key"
"""


def test_minimums_hold_from_their_day_on(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(GOOD)
    own = own_rules(path)
    book = RuleBook(own=own)
    days = (date(2026, 5, 31), date(2026, 6, 1), date(2026, 11, 21), date(2026, 11, 22))
    assert [book.rules("anthropic", "claude-opus-4-6", day).minimum_tokens for day in days] == [4096, 3000, 3000, 2000]
    assert book.rules("bedrock", "claude-opus-4-6", days[3]).minimum_tokens == 4096
    assert own.assumptions == {"ttl_in_key": True}


def test_every_fault_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        """[assumption]
[assumptions]
ttl_in_keys = true
lookback_runs = "some"
[[minimum_tokens]]
model = "claude-opus-4-66"
value = -1
form = 2026-11-22
[[minimum_tokens]]
host = "antropic"
from = "today"
"""
    )
    with pytest.raises(InputError) as error:
        own_rules(path)
    assert [str(fault).removeprefix(f"{path}:").partition(";")[0] for fault in error.value.faults] == [
        "1 assumption: expected one of data, assumptions, minimum_tokens, capacity_tokens, step_tokens, evidence"
        " (did you mean 'assumptions'?)",
        "3 assumptions.ttl_in_keys: unknown rule (did you mean 'ttl_in_key'?)",
        "4 assumptions.lookback_runs: expected one of by_date, collapsed, counted",
        "6 minimum_tokens[0].model: unknown model 'claude-opus-4-66' on host anthropic"
        " (did you mean 'claude-opus-4-6'?)",
        "7 minimum_tokens[0].value: expected tokens, a whole number from 0",
        "8 minimum_tokens[0].form: unknown key (did you mean 'from'?)",
        "9 minimum_tokens[1]: model is missing",
        "9 minimum_tokens[1]: value is missing",
        "10 minimum_tokens[1].host: no rules for host 'antropic' (did you mean 'anthropic'?)",
        "11 minimum_tokens[1].from: expected a day like 2026-03-07",
    ]


SERVER = """
[[capacity_tokens]]
host = "vllm"
model = "*"
value = 1_200_000
[[capacity_tokens]]
host = "vllm"
model = "big"
value = 300_000
[[step_tokens]]
host = "vllm"
model = "big"
value = 32
"""


def test_what_a_server_of_ones_own_holds(tmp_path: Path) -> None:
    path = tmp_path / "server.toml"
    path.write_text(SERVER, encoding="utf-8")
    book = RuleBook(own=own_rules(path))
    found = [(book.rules("vllm", name).capacity_tokens, book.rules("vllm", name).step_tokens) for name in ("x", "big")]
    assert found == [(1_200_000, 16), (300_000, 32)]
    assert book.rules("sglang", "x").capacity_tokens is None


@pytest.mark.parametrize(("rule", "least"), [("minimum_tokens", 0), ("capacity_tokens", 1), ("step_tokens", 1)])
def test_the_least_of_each(tmp_path: Path, rule: str, least: int) -> None:
    path = tmp_path / "server.toml"
    row = f'[[{rule}]]\nhost = "vllm"\nmodel = "x"\nvalue = '
    path.write_text(f"{row}{least}\n", encoding="utf-8")
    assert getattr(RuleBook(own=own_rules(path)).rules("vllm", "x"), rule) == least
    path.write_text(f"{row}{least - 1}\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"expected tokens, a whole number from {least}; got {least - 1}$"):
        own_rules(path)
