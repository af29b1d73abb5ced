"""Which models a host serves on a day: out by then, and not yet withdrawn."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from cachecost.base.errors import CannotEvaluate
from cachecost.providers.rulefile import Model, catalogue

CLAUDE_API = "anthropic"


def is_offered(model: Model, host: str, day: date | None) -> bool:
    """Whether `host` serves the model on `day` (None: that of the shipped data). It does while no end is known."""
    when = day or catalogue(host).data_date
    retired = _retirement_day(model)
    return model.released <= when and not (retired and retired <= when)


def list_models(host: str, *days: date | None) -> Iterator[Model]:
    """The models that `host` serves on each of these days, as `is_offered` has them."""
    for model in catalogue(host).models.values():
        if all(is_offered(model, host, day) for day in days):
            yield model


def withdrawn(host: str, name: str, day: date | None) -> str:
    """Why `host` does not serve a model that it has no longer; "" where it does, or never had it."""
    try:
        model = catalogue(host).model(name, day)
    except CannotEvaluate:
        return ""
    retired = _retirement_day(model)
    if not retired or retired > (day or catalogue(host).data_date):
        return ""
    known = "" if model.retired else f" from the Claude API, and no later day is known for {host}"
    return f"{model.name} was retired on {retired}{known}"


def must_be_served(host: str, name: str, day: date | None) -> None:
    """Raise CannotEvaluate unless `host` serves the model on `day`; the text names the --as-of that would do."""
    book = catalogue(host)
    model, when = book.model(name, day), day or book.data_date
    if is_offered(model, host, when):
        return
    if when < model.released:
        came = f"{model.name} was released on {model.released}, after the date of this replay ({when})"
        raise CannotEvaluate(f"{came}; add --as-of {model.released} or a later day")
    why, before = withdrawn(host, name, when), last_day(model)
    raise CannotEvaluate(f"{why}; the date of this replay is {when}; add --as-of {before} or an earlier day")


def last_day(model: Model) -> date | None:
    """The last day on which the model is served; None: no end is known."""
    retired = _retirement_day(model)
    return retired - timedelta(days=1) if retired else None


def _retirement_day(model: Model) -> date | None:
    """The first day without the model; the Claude API's where the host states none, as it may end there too."""
    ours = catalogue(CLAUDE_API).models.get(model.name)
    return model.retired or (ours.retired if ours else None)
