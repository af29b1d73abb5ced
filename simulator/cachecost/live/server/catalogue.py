"""/v1/models: the models whose rules are known, newest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from cachecost.live.server.errors import invalid, not_found, unknown_model
from cachecost.live.server.model import ApiError
from cachecost.providers.listing import ModelRow, model_rows
from cachecost.providers.rules import RuleBook, data_date

Wire = Mapping[str, Any]
LARGEST_PAGE = 1000
USUAL_PAGE = 20
ALIASES = "_aliases"
EXPLICIT = "-explicit"
"""What ends the ids by which our rules tell a way of caching apart: no model of an API."""


def models_of(rules: RuleBook, host: str = "anthropic") -> list[Wire]:
    """The wire objects of all models of `host` on the book's day."""
    day = rules.as_of or data_date(host)
    rows = sorted(model_rows(rules, host), key=lambda row: (-row.released.toordinal(), row.id))
    return [_wire(row, day) for row in rows]


def _wire(row: ModelRow, day: date) -> Wire:
    retires = _time(row.retired) if row.retired else None
    return {
        "type": "model",
        "id": row.id,
        "display_name": _display(row.id),
        "created_at": _time(row.released),
        "deprecated_at": None,
        "retires_at": retires,
        "lifecycle": "retired" if row.retired and row.retired <= day else "active",
        "line": next((part for part in row.id.split("-")[1:] if part.isalpha()), None),
        "max_input_tokens": row.rules.context_window,
        "max_tokens": None,
        ALIASES: row.aliases,
    }


def _time(day: date) -> str:
    return f"{day.isoformat()}T00:00:00Z"


def _display(name: str) -> str:
    """`claude-opus-4-6-20260205` → Claude Opus 4.6."""
    parts = [part for part in name.split("-") if not (part.isdecimal() and len(part) == 8)]
    words = " ".join(part.capitalize() for part in parts if not part.isdecimal())
    return f"{words} {'.'.join(part for part in parts if part.isdecimal())}".strip()


def listed_models(models: Sequence[Wire]) -> list[Wire]:
    """The models that an API lists: those that can be called on the day."""
    return [one for one in models if one["lifecycle"] == "active" and not str(one["id"]).endswith(EXPLICIT)]


def find_model(models: Sequence[Wire], name: str) -> Wire | ApiError:
    """The model of this id or alias."""
    found = next((one for one in models if name in (one["id"], *one.get(ALIASES, ()))), None)
    return unknown_model(name) if found is None else _without_aliases(found)


def _without_aliases(model: Wire) -> Wire:
    return {name: value for name, value in model.items() if name != ALIASES}


def page_of(models: Sequence[Wire], query: Mapping[str, str], lifecycles: Sequence[str] = ()) -> Wire | ApiError:
    """A page of the list: `limit`, `after_id`, `before_id`; retired models only on request."""
    wanted = lifecycles or ("active", "deprecated")
    known = [_without_aliases(one) for one in models if one.get("lifecycle", "active") in wanted]
    told = query.get("limit", str(USUAL_PAGE))
    is_number = told.isascii() and told.isdecimal() and len(told) <= len(str(LARGEST_PAGE))
    if not (is_number and 1 <= int(told) <= LARGEST_PAGE):
        return invalid(f"limit: Input should be a whole number from 1 to {LARGEST_PAGE}")
    places = {one["id"]: place for place, one in enumerate(known)}
    for name in ("after_id", "before_id"):
        if name in query and query[name] not in places:
            return not_found(f"{name}: {query[name]}")
    return _cut(known, places, query, int(told))


def _cut(known: Sequence[Wire], places: Mapping[str, int], query: Mapping[str, str], limit: int) -> Wire:
    if "before_id" in query:
        end = places[query["before_id"]]
        begin, more = max(0, end - limit), end > limit
    else:
        begin = places[query["after_id"]] + 1 if "after_id" in query else 0
        end, more = begin + limit, len(known) > begin + limit
    page = known[begin:end]
    ids = [one["id"] for one in page]
    return {"data": page, "has_more": more, "first_id": ids[0] if ids else None, "last_id": ids[-1] if ids else None}
