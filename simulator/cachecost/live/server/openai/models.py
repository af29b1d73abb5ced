"""OpenAI's /v1/models: the models whose rules are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from cachecost.live.server.catalogue import find_model, listed_models
from cachecost.live.server.model import ApiError

Wire = dict[str, Any]


def openai_models(models: Sequence[Mapping[str, Any]]) -> Wire:
    """The list, from the wire objects of the Messages API."""
    return {"object": "list", "data": [_model(one) for one in listed_models(models)]}


def openai_model(models: Sequence[Mapping[str, Any]], name: str) -> Wire | ApiError:
    """One model by its id or alias."""
    found = find_model(models, name)
    return found if isinstance(found, ApiError) else _model(found)


def _model(one: Mapping[str, Any]) -> Wire:
    created = int(datetime.fromisoformat(one["created_at"]).timestamp())
    return {"id": one["id"], "object": "model", "created": created, "owned_by": "openai"}
