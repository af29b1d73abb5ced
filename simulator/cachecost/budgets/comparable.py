"""Whether a baseline says anything about today's prompts: under other prices, rules or counts it does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from functools import cache

from cachecost.budgets.baseline import Baseline, Figures
from cachecost.providers.rules import ModelRules

Records = Mapping[str, Mapping[str, str]]
ABSENT = "none"


def differences(before: Baseline, now: Baseline, strategy: str) -> list[str]:
    """What besides the prompts of a strategy has changed since: "price of a read $0.5, now $0.4". Empty: comparable.

    Judged is what was used, not versions of the data: prices of other models may come and go.
    """
    found = [f"{name} {old}, now {new}" for name, old, new in _scenario_fields(before, now) if old != new]
    if found:
        return found
    old, new = before.strategies[strategy], now.strategies[strategy]
    found += _differing(_of(before.prices, old.prices), _of(now.prices, new.prices), "the {} price of {} {}, now {}")
    rules = _complete(_of(before.rules, old.rules)), _complete(_of(now.rules, new.rules))
    found += _differing(*rules, "{} of {} {}, now {}")
    if old.tokens != new.tokens:
        found.append(f"tokens counted by {old.tokens}, now by {new.tokens}")
    elif counted_otherwise(old, new):
        found.append("the token counts of identical prompts changed")
    return found


def _scenario_fields(before: Baseline, now: Baseline) -> Iterator[tuple[str, str, str]]:
    for name in ("host", "model", "as_of"):
        yield name, getattr(before, name), getattr(now, name)


def _of(table: Records, digests: list[str]) -> Records:
    return {digest: table[digest] for digest in digests if digest in table}


def _complete(table: Records) -> Records:
    """Rules with those that came after an older baseline: they are at their default there."""
    return {digest: {**_rule_defaults(), **record} for digest, record in table.items()}


@cache
def _rule_defaults() -> Mapping[str, str]:
    """Rules that a model need not state, as a baseline writes their default."""
    stated = {field.name: field.default for field in fields(ModelRules) if field.default is not MISSING}
    made = {field.name: field.default_factory() for field in fields(ModelRules) if field.default_factory is not MISSING}
    return {name: str(default) for name, default in {**stated, **made}.items()}


def _differing(before: Records, now: Records, words: str) -> list[str]:
    """What differs for a model that both know. More ways to call it, or fewer, are a change of the prompts."""
    words_found = []
    for key in sorted({_key(one) for one in before.values()} & {_key(one) for one in now.values()}):
        old, new = (
            {tuple(sorted(one.items())): one for one in table.values() if _key(one) == key} for table in (before, now)
        )
        if not (old.keys() <= new.keys() or new.keys() <= old.keys()):
            pair = old[min(old.keys() - new.keys())], new[min(new.keys() - old.keys())]
            words_found += [words.format(name, key[1], *values) for name, values in _fields(*pair)]
    return words_found


def _key(record: Mapping[str, str]) -> tuple[str, str]:
    return record.get("host", ""), record.get("model", "")


def _fields(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, str]]]:
    for name in sorted(old.keys() | new.keys()):
        values = old.get(name, ABSENT), new.get(name, ABSENT)
        if values[0] != values[1]:
            yield name.replace("_", " "), values


def counted_otherwise(old: Figures, new: Figures) -> bool:
    """Whether no prompt has changed, and yet they are not as long as they were."""
    if old.calls_a_row != new.calls_a_row or len(old.rows) != len(new.rows):
        return False
    pairs = list(zip(old.rows, new.rows, strict=True))
    same = all((one.prompt, one.breakpoints) == (other.prompt, other.breakpoints) for one, other in pairs)
    return same and any(one.read + one.other != other.read + other.other for one, other in pairs)
