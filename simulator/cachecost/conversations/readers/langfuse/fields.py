"""The fields of a Langfuse observation: in camelCase from its API and pages, in snake_case from blob storage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cachecost.base.limits import whole_number
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.common.dialects import parse_json_text
from cachecost.conversations.readers.common.json_values import object_or_empty
from cachecost.conversations.usage_shapes import usage_from
from cachecost.prompts.wire import show_found
from cachecost.providers.hosts import parse_model_name
from cachecost.providers.usage import Usage

USAGES = ("usageDetails", "usage_details", "usage")
"""`usage` is that of old versions, with a unit."""
PROVIDERS = ("ls_provider", "gen_ai.provider.name", "gen_ai.system")
"""Metadata keys of LangChain and OpenTelemetry that name the provider."""


def value_of(row: JsonObject, *names: str) -> Any:
    """The value of the first name that has one. Blob storage writes "" for null, and JSON as a string."""
    found = (parse_json_text(row.data.get(name)) for name in names)
    return next((value for value in found if value is not None and value != ""), None)


def text_of(row: JsonObject, *names: str) -> str:
    value = value_of(row, *names)
    return str(value) if isinstance(value, (str, int)) else ""


def start_of(row: JsonObject) -> str | None:
    """The start time, which every observation has."""
    return _moment(row, "start_time" if "start_time" in row.data else "startTime", required=True)


def first_token_at(row: JsonObject) -> str | None:
    names = ("completionStartTime", "completion_start_time")
    return next((_moment(row, name) for name in names if row.data.get(name)), None)


def _moment(row: JsonObject, name: str, required: bool = False) -> str | None:
    """An ISO 8601 time, with a T or a space in it, without a zone in UTC."""
    if required and not row.data.get(name):
        row.time(name)
    return row.moment(name)


def model_and_host(row: JsonObject) -> tuple[str, str | None]:
    """(the model as the instrumentation named it, the host if it is known)."""
    places = (object_or_empty(value_of(row, "metadata")), _attributes(row))
    told = (place.get(name) for place in places for name in PROVIDERS)
    provider = next((one for one in told if isinstance(one, str)), "")
    return parse_model_name(text_of(row, "model", "providedModelName", "provided_model_name"), provider)


def _attributes(row: JsonObject) -> Mapping[str, Any]:
    """The attributes of the span that an observation came as."""
    return object_or_empty(parse_json_text(object_or_empty(value_of(row, "metadata")).get("attributes")))


def usage_of(row: JsonObject) -> Usage | None:
    """The usage, or None. Raises NotAMessage.

    What came as attributes of OpenTelemetry is read as such, where the metadata keeps it: older servers copied its
    input, which includes the cached tokens, into the buckets, where it should not.
    """
    sent = {name: _number(value) for name, value in _attributes(row).items() if name.startswith("gen_ai.usage.")}
    if any("cache" in name and isinstance(value, int) and value for name, value in sent.items()):
        counts = {name: value for name, value in sent.items() if isinstance(value, int)}
        return usage_from(counts, "metadata.attributes", "otel")
    for name in USAGES:
        value = parse_json_text(row.data.get(name))
        if value and not isinstance(value, Mapping):
            row.fault(name, f"expected an object; got {show_found(value)}")
        told = {key: _number(count) for key, count in object_or_empty(value).items() if count is not None}
        if told.get("unit", "TOKENS") == "TOKENS" and any(isinstance(count, int) and count for count in told.values()):
            return usage_from(_without_writes(told), name, "langfuse")
    return None


def _without_writes(told: Mapping[str, Any]) -> dict[str, Any]:
    """LiteLLM subtracts the tokens read from the input, but not the tokens written (issue 26919). This shows in its
    total, which counts each token once."""
    names = ("input", "output", "total", "cache_read_input_tokens", "cache_creation_input_tokens")
    counts = [told[name] for name in names if isinstance(told.get(name), int)]
    if len(counts) < len(names) or not all(counts):
        return dict(told)
    told_in, told_out, total, read, written = counts
    partly = told_in + read + told_out == total and told_in >= written
    return {**told, "input": told_in - written} if partly else dict(told)


def _number(count: Any) -> Any:
    """ClickHouse writes large numbers as texts, and sums as numbers with a point."""
    if isinstance(count, float) and count.is_integer():
        return int(count)
    number = whole_number(count) if isinstance(count, str) and count.isascii() else None
    return count if number is None else number
