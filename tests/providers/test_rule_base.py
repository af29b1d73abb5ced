"""Rule files over a base: what they replace, and what is not well formed."""

import re
from datetime import date
from typing import Any

import pytest

from cachecost.providers.hosts import ParsedRules, parse

SOURCES = {
    "page": {"title": "A page", "date": date(2026, 1, 1), "confidence": "documented"},
    "other": {"title": "Other", "date": date(2026, 2, 2), "confidence": "measured"},
}
BASE: dict[str, Any] = {
    "data": {"host": "base", "date": date(2026, 11, 21)},
    "sources": SOURCES,
    "rules": {
        "minimum": {"meaning": "shortest", "unit": "tokens", "source": "page"},
        "scope": {"meaning": "who shares", "source": "page", "default": {"value": "all", "from": date(2024, 1, 1)}},
        "ttls": {
            "meaning": "ttls",
            "source": "page",
            "default": {"value": ["5m", "1h"], "from": date(2024, 1, 1)},
        },
    },
    "generations": {"g": {"scope": {"value": "generation", "from": date(2024, 6, 1)}}},
    "model": [
        {"id": "new", "released": date(2026, 5, 1), "source": "page", "generation": "g", "minimum": 512},
        {
            "id": "old",
            "aliases": ["old-1"],
            "released": date(2024, 5, 1),
            "retired": date(2026, 6, 1),
            "source": "page",
            "generation": "g",
            "minimum": [{"value": 1024, "from": date(2024, 5, 1)}, {"value": 2048, "from": date(2025, 1, 1)}],
        },
    ],
}
HEAD: dict[str, Any] = {"host": "over", "base": "base", "since": date(2025, 3, 1), "date": date(2026, 11, 21)}
BASED = parse(BASE)


def over(head: dict[str, Any] | None = None, **tables: Any) -> ParsedRules:
    return parse({"data": {**HEAD, **(head or {})}, "sources": SOURCES, **tables}, BASED)


def test_an_empty_file_is_its_base_from_its_own_first_day_on() -> None:
    parsed = over()
    assert parsed.rules == BASED.rules
    assert [model.rows for model in parsed.models.values()] == [model.rows for model in BASED.models.values()]
    assert [(model.name, model.released, model.retired) for model in parsed.models.values()] == [
        ("new", date(2026, 5, 1), None),
        ("old", date(2025, 3, 1), None),
    ]


def test_retirements_are_inherited_only_where_the_file_says_so() -> None:
    assert over({"retires_with_base": True}).models["old"].retired == date(2026, 6, 1)
    own = [{"id": "old", "retired": date(2027, 1, 1)}]
    assert over({"retires_with_base": True}, model=own).models["old"].retired == date(2027, 1, 1)


def test_a_model_that_is_lacking_is_gone() -> None:
    assert list(over({"lacks": ["old"]}).models) == ["new"]


def test_rows_of_a_model_replace_the_whole_history_of_that_rule_only() -> None:
    said = {"id": "old", "aliases": ["old-over"], "minimum": {"value": 4096, "source": "other"}}
    model = over(model=[said]).models["old"]
    assert [(row.value, row.start, row.source.title) for row in model.rows["minimum"]] == [
        (4096, date(2025, 3, 1), "Other")
    ]
    assert model.rows["scope"] is BASED.models["old"].rows["scope"]
    assert (model.aliases, model.source.title) == (("old-1", "old-over"), "A page")
    assert over(model=[said]).models["new"].rows is not None


def test_a_rule_of_all_models_replaces_rows_and_keeps_the_meaning() -> None:
    said = {"scope": {"default": {"value": "one", "from": date(2025, 3, 1), "source": "other"}}}
    rule = over(rules=said).rules["scope"]
    assert (rule.meaning, [row.value for row in rule.rows]) == ("who shares", ["one"])
    assert BASED.rules["scope"].rows[0].value == "all"


def test_a_rule_may_be_the_files_own() -> None:
    said = {"knob": {"meaning": "a knob", "default": {"value": False, "from": date(2025, 3, 1), "source": "other"}}}
    assert over(rules=said, model=[{"id": "new", "knob": {"value": True, "source": "page"}}]).models["new"].rows["knob"]


def test_a_model_may_be_the_files_own() -> None:
    entry = {"id": "mine", "released": date(2026, 7, 1), "source": "page", "generation": "h"}
    assert list(over(model=[entry], generations={"h": {}}).models) == ["mine", "new", "old"]


def test_a_family_goes_before_the_generation_and_a_model_before_its_family() -> None:
    families = {"f": {"scope": {"value": "family", "source": "other"}, "minimum": {"value": 7, "source": "other"}}}
    entry = {"id": "mine", "released": date(2026, 7, 1), "source": "page", "generation": "h", "family": "f"}
    own = {**entry, "minimum": {"value": 9, "source": "page", "confidence": "assumed"}}
    generations = {"h": {"scope": {"value": "generation", "source": "page"}}}
    rows = over(model=[own], generations=generations, families=families).models["mine"].rows
    assert [(rows[name][0].value, rows[name][0].confidence) for name in ("scope", "minimum")] == [
        ("family", "measured"),
        (9, "assumed"),
    ]


def test_a_list_is_a_value_and_a_list_of_rows_a_history() -> None:
    (row,) = BASED.rules["ttls"].rows
    assert row.value == ["5m", "1h"]
    (own,) = over(model=[{"id": "new", "ttls": {"value": ["5m"], "source": "other"}}]).models["new"].rows["ttls"]
    assert own.value == ["5m"]


BAD = [
    ({"model": [{"id": "old", "minimun": 3}]}, "model old: no rule is called minimun"),
    (
        {"model": [{"id": "old", "minimum": 3}]},
        "rule minimum: a row of it needs a 'source', as the rule names none here",
    ),
    (
        {"rules": {"scope": {"default": {"value": 1, "source": "page"}}}},
        "rule scope: a row that holds for all models needs a 'from'",
    ),
    (
        {"sources": {"page": {"title": "A page", "date": date(2026, 1, 1)}}},
        "source page: confidence is one of documented, measured, assumed, unknown; got None",
    ),
    (
        {"model": [{"id": "old", "minimum": {"value": 3, "source": "page", "confidence": "sure"}}]},
        "rule minimum: confidence is one of documented, measured, assumed, unknown; got 'sure'",
    ),
    ({"ways": {"far": {"minimun": 3}}}, "way far: no rule is called minimun"),
    ({"assumption": [{"name": "s", "value": "v", "minimun": 3}]}, "assumption s: no rule is called minimun"),
    ({"data": {**HEAD, "lacks": ["odl", "new"]}}, "lacks: its base has no odl"),
    (
        {
            "generations": {"g": {}},
            "model": [
                {
                    "id": "newest",
                    "released": date(2026, 5, 1),
                    "source": "page",
                    "generation": "g",
                    "price": {"inptu": 3},
                }
            ],
        },
        "model newest: price: no token class is called inptu",
    ),
]


@pytest.mark.parametrize(("tables", "text"), BAD)
def test_what_is_not_well_formed(tables: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        parse({"data": HEAD, "sources": SOURCES, **tables}, BASED)


def test_a_source_that_is_not_listed_is_no_source() -> None:
    with pytest.raises(KeyError, match="nowhere"):
        over(model=[{"id": "old", "minimum": {"value": 3, "source": "nowhere"}}])
