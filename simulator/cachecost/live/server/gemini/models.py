"""Gemini's /v1beta/models: the models whose rules are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cachecost.live.server.model import ApiError, find_model, listed_models

METHODS = ("generateContent", "countTokens")
Wire = dict[str, Any]


def gemini_models(models: Sequence[Mapping[str, Any]]) -> Wire:
    """The list, from the wire objects of the Messages API."""
    return {"models": [_model(one) for one in listed_models(models)]}


def gemini_model(models: Sequence[Mapping[str, Any]], name: str) -> Wire | ApiError:
    """One model by its id or alias."""
    found = find_model(models, name)
    return found if isinstance(found, ApiError) else _model(found)


def _model(one: Mapping[str, Any]) -> Wire:
    return {
        "name": f"models/{one['id']}",
        "displayName": one["display_name"],
        "inputTokenLimit": one["max_input_tokens"],
        "supportedGenerationMethods": list(METHODS),
    }
