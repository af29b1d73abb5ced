"""Structured output of a request, with its schema or, in content-free recordings, the counts of it."""

from __future__ import annotations

from collections.abc import Mapping
from json import dumps
from typing import Any

PLACES = (("output_config", "format"), ("output_format",))
"""Where a body may ask for structured output, by path; the first wins."""
UNSEEN = "~"
"""What stands for a schema that was taken out is a text that begins with this."""


def output_format(params: Mapping[str, Any]) -> Any:
    """The output format in the parameters of a request; None if there is none."""
    return (params.get("output_config") or {}).get("format") or params.get("output_format")


def schema_text(schema: Any) -> str:
    """The schema as Claude is shown it: keys sorted, indented by 2."""
    return dumps(schema, indent=2, ensure_ascii=False, sort_keys=True)


def counts_unseen(wanted: Mapping[str, Any]) -> Mapping[str, int] | None:
    """Counts of `schema_text` by tokenizer where the schema was removed; None where it is present."""
    schema, counts = wanted.get("schema"), wanted.get("counts")
    if not isinstance(schema, str) or not schema.startswith(UNSEEN):
        return None
    return counts if isinstance(counts, Mapping) else {}
