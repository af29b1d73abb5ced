"""Which models a host serves on a day: out by then, and not yet withdrawn."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from cachecost.base.errors import CannotEvaluate
from cachecost.providers.rulefile import Model, catalogue

CLAUDE_API = "anthropic"


def list_models(host: str, day: date | None) -> Iterator[Model]:
    """The models of `host` on `day` (None: the day of the shipped data)."""
    book = catalogue(host)
    when = day or book.data_date
    for model in book.models.values():
        retired = _retirement_day(model)
        if model.released <= when and not (retired and retired <= when):
            yield model


def withdrawn(host: str, name: str, day: date | None) -> str:
    """Why `host` does not serve a model that it has no longer; "" where it does, or never had it."""
    book = catalogue(host)
    try:
        model = book.model(name)
    except CannotEvaluate:
        return ""
    retired = _retirement_day(model)
    if not retired or retired > (day or book.data_date):
        return ""
    known = "" if model.retired else f" from the Claude API, and no later day is known for {host}"
    return f"{model.name} was retired on {retired}{known}"


def must_be_served(host: str, name: str, day: date | None) -> None:
    """Raise CannotEvaluate unless `host` serves the model on `day`; the text names the --as-of that would do."""
    book = catalogue(host)
    model, when = book.model(name), day or book.data_date
    if when < model.released:
        came = f"{model.name} was released on {model.released}, after the date of this replay ({when})"
        raise CannotEvaluate(f"{came}; add --as-of {model.released} or a later day")
    if why := withdrawn(host, name, when):
        raise CannotEvaluate(f"{why}; the date of this replay is {when}; add --as-of with an earlier day")


def _retirement_day(model: Model) -> date | None:
    """The first day without the model; the Claude API's where the host states none, as it may end there too."""
    ours = catalogue(CLAUDE_API).models.get(model.name)
    return model.retired or (ours.retired if ours else None)
