"""Reads logs of Gemini's generateContent that clients write themselves (docs/reference/formats.md).

The body is as the API takes it (`contents`, `systemInstruction`, `generationConfig` …) or as google-genai's
`generate_content` does (`config` and a text as `contents`), the answer as the API returns it; an array of answers is a
stream. The model is that of the URL, else of the row, of the request, or the answer's `modelVersion`.
"""

from __future__ import annotations

import json
from typing import Any

from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.call_builder import first_keys, objects, request_keys
from cachecost.conversations.readers.common.json_values import object_or_empty
from cachecost.conversations.readers.http.exchange import HttpExchange
from cachecost.conversations.readers.http.recorders import RecorderForm

VERTEX = "aiplatform.googleapis.com/v1/publishers/google"


def sniff(head: bytes) -> str | None:
    keys = request_keys(head) if "request" in first_keys(head) else set()
    return 'its first "request" has "contents"' if "contents" in keys and "messages" not in keys else None


def _exchange(form: RecorderForm, row: JsonObject, *_: JsonObject) -> HttpExchange:
    body, answer = row.mapping("request"), row.data.get("response")
    config, contents = body.get("config"), body.get("contents")
    body = {**object_or_empty(config), **body}  # the SDK nests it
    if isinstance(contents, str):
        body["contents"] = [{"role": "user", "parts": [{"text": contents}]}]
    if not isinstance(answer, list):
        answer, usage = row.mapping("response", required=False), row.mapping("usage", required=False)
        answer = {"usageMetadata": usage, **answer} if usage else answer
    url, requested = row.text("url", ""), body.pop("model", None)
    if not url:
        last = answer[-1] if isinstance(answer, list) and answer else answer
        names = [row.data.get("model"), requested, object_or_empty(last).get("modelVersion")]
        names = [name for name in names if isinstance(name, str) and name]
        if not names:
            places = 'in "model", the request, "url" or the answer\'s "modelVersion"'
            row.fault("model", f"expected a model id ({places}); got nothing")
        at = VERTEX if row.text("host", "") == "vertex" else "generativelanguage.googleapis.com/v1beta"
        url = f"https://{at}/models/{''.join(names[:1]).rpartition('/')[2]}:generateContent"
    session = row.text("session", "")
    return HttpExchange(
        url=url,
        request_headers={"session-id": session} if session else {},
        request=_encode(body),
        status=row.whole("status", 200),
        response=_encode(answer) if answer else b"",
        started=row.moment("timestamp"),
        first_token_s=row.number("first_token_s") or 0.0,
        request_at="request",
        response_at="response",
        line=row.line or 0,
    )


def _encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


calls = RecorderForm(
    name="generateContent",
    read=lambda path, faults, warn, _: objects(path, faults, warn, "a log of generateContent"),
    halves=("", ""),
    exchange=_exchange,
).calls
