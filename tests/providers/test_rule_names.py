"""A rule file states what the code reads: a misspelled or missing rule fails where they are first asked for."""

from __future__ import annotations

import pytest

from cachecost.base.structs import replace
from cachecost.providers import rules as module
from cachecost.providers.hosts import catalogue, hosts
from cachecost.providers.rules import RuleBook


@pytest.mark.parametrize("host", hosts())
def test_every_rule_of_every_host_is_read(host: str) -> None:
    module._check_rule_names(host, catalogue(host).rules)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"refresh_on_read": 1}, "nothing reads [rules.refresh_on_read] (did you mean 'refreshes_on_read'?)"),
        ({"scope": 0}, "[rules.scope] is missing"),
    ],
)
def test_a_rule_that_nothing_reads_or_that_is_missing_fails(
    change: dict[str, int], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = catalogue("mistral")
    (name, is_there), *_ = change.items()
    stated = (
        {**book.rules, name: book.rules["scope"]} if is_there else {k: v for k, v in book.rules.items() if k != name}
    )
    monkeypatch.setattr(module, "catalogue", lambda host: replace(book, rules=stated))
    with pytest.raises(ValueError) as error:
        RuleBook().rules("mistral", "mistral-large-4")
    assert words in str(error.value)
