"""OpenAI's Responses: POST /v1/responses. Wire form: the API reference and the types of openai 3.54.

The items of a response's `output`, and the events that stream each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cachecost.conversations.readers.apis.openai import from_responses
from cachecost.live.server.arrival import ReceivedCall, ServedResponse, Wire, as_bytes, pieces
from cachecost.live.server.model import ApiError, ResolvedCall, invalid
from cachecost.live.server.openai.either_api import MAKER, OpenAIApi, arguments_of, is_custom, shown_model
from cachecost.live.server.openai.usage import body_fault, responses_usage
from cachecost.live.server.state import ServerState

Block = Mapping[str, Any]
Item = dict[str, Any]
Event = dict[str, Any]
SEALED = "reasoning.encrypted_content"


def items_of(content: Sequence[Block], name: str, sent: Mapping[str, Any]) -> list[Item]:
    """The items of an answer; `name` tells their ids apart from those of other answers."""
    made = (_item(block, f"{name}_{number}", sent) for number, block in enumerate(content))
    return [item for item in made if item is not None]


def _item(block: Block, name: str, sent: Mapping[str, Any]) -> Item | None:
    kind = block.get("type")
    if kind == "text":
        text = {"type": "output_text", "text": block["text"], "annotations": [], "logprobs": []}
        return {"id": f"msg_{name}", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    if kind == "thinking":
        summary = [{"type": "summary_text", "text": block["thinking"]}]
        sealed = {"encrypted_content": block.get("signature")} if SEALED in (sent.get("include") or ()) else {}
        return {"id": f"rs_{name}", "type": "reasoning", "summary": summary, **sealed}
    return _call(block, name, sent) if kind == "tool_use" else None


def _call(block: Block, name: str, sent: Mapping[str, Any]) -> Item:
    head = {"status": "completed", "call_id": block["id"], "name": block["name"]}
    if is_custom(block["name"], sent):
        return {"id": f"ctc_{name}", "type": "custom_tool_call", **head, "input": arguments_of(block)}
    return {"id": f"fc_{name}", "type": "function_call", **head, "arguments": arguments_of(block)}


def item_events(item: Item, number: int) -> Iterator[Event]:
    """The events of the `number`-th item."""
    at = {"output_index": number, "item_id": item["id"]}
    yield {"type": "response.output_item.added", "output_index": number, "item": _begun(item)}
    if item["type"] == "message":
        yield from _text_events(item["content"][0], {**at, "content_index": 0})
    elif item["type"] == "reasoning":
        yield from _summary_events(item["summary"][0], {**at, "summary_index": 0})
    else:
        field = "input" if item["type"] == "custom_tool_call" else "arguments"
        kind = f"response.{item['type']}_{field}"
        for piece in pieces(item[field]):
            yield {"type": f"{kind}.delta", **at, "delta": piece}
        name = {"name": item["name"]} if field == "arguments" else {}
        yield {"type": f"{kind}.done", **at, field: item[field], **name}
    yield {"type": "response.output_item.done", "output_index": number, "item": item}


GROWING: dict[str, Item] = {
    "message": {"content": []},
    "reasoning": {"summary": []},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
}
"""The field of an item that is streamed in pieces, and its first value."""


def _begun(item: Item) -> Item:
    status = {"status": "in_progress"} if "status" in item else {}
    return {**item, **status, **GROWING[item["type"]]}


def _text_events(text: Item, at: Event) -> Iterator[Event]:
    kind = "response.output_text"
    yield {"type": "response.content_part.added", **at, "part": {**text, "text": ""}}
    for piece in pieces(text["text"]):
        yield {"type": f"{kind}.delta", **at, "delta": piece, "logprobs": []}
    yield {"type": f"{kind}.done", **at, "text": text["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **at, "part": text}


def _summary_events(summary: Item, at: Event) -> Iterator[Event]:
    kind = "response.reasoning_summary"
    yield {"type": f"{kind}_part.added", **at, "part": {**summary, "text": ""}}
    for piece in pieces(summary["text"]):
        yield {"type": f"{kind}_text.delta", **at, "delta": piece}
    yield {"type": f"{kind}_text.done", **at, "text": summary["text"]}
    yield {"type": f"{kind}_part.done", **at, "part": summary}


LIMITS = {"max_output_tokens": 16}
ECHOED: Wire = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
}
"""Fields of a request that its response repeats, and their defaults."""


class ResponsesApi(OpenAIApi):
    """See `ServedApi`."""

    name = "responses"
    id_prefix = "resp_"

    def resolve(self, served: ServerState, arrived: ReceivedCall, start: float) -> ResolvedCall | ApiError:
        if arrived.body.get("prompt") is not None:
            return invalid("prompt: cachecost serve keeps no prompt templates")
        if refused := body_fault(arrived.body, "input", LIMITS):
            return refused
        whole = served.responses.complete(arrived.workspace, arrived.body)
        if isinstance(whole, ApiError):
            return whole
        body = from_responses(whole)
        return ResolvedCall(body, start=start, host=served.meters.host_of(MAKER, body["model"]))

    def keep(self, served: ServerState, arrived: ReceivedCall, resolved: ResolvedCall, answer: ServedResponse) -> None:
        """Store the response, to be continued."""
        whole, response = served.responses.complete(arrived.workspace, arrived.body), self.whole(answer)
        assert not isinstance(whole, ApiError)
        served.responses.keep(arrived.workspace, response["id"], whole, response["output"])

    def whole(self, answer: ServedResponse) -> Wire:
        assert not isinstance(answer.message, ApiError)
        message, name = answer.message, str(answer.message["id"]).removeprefix(self.id_prefix)
        is_cut = message["stop_reason"] == "max_tokens"
        return {
            **_head(answer),
            "status": "incomplete" if is_cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            "output": items_of(message["content"], name, answer.sent),
            "usage": responses_usage(message, answer.thinking_tokens),
        }

    def events(self, answer: ServedResponse) -> Iterator[bytes]:
        numbered = ({**event, "sequence_number": number} for number, event in enumerate(self._events(answer)))
        return as_bytes(numbered)

    def _events(self, answer: ServedResponse) -> Iterator[Wire]:
        whole = self.whole(answer)
        begun = {**_head(answer), "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
        yield {"type": "response.created", "response": begun}
        yield {"type": "response.in_progress", "response": begun}
        for number, item in enumerate(whole["output"]):
            yield from item_events(item, number)
        yield {"type": f"response.{whole['status']}", "response": whole}


RESPONSES = ResponsesApi()


def _head(answer: ServedResponse) -> Wire:
    assert not isinstance(answer.message, ApiError)
    told = {name: answer.sent[name] for name in ECHOED if answer.sent.get(name) is not None}
    return {
        "id": answer.message["id"],
        "object": "response",
        "created_at": int(answer.start),
        "error": None,
        "model": shown_model(answer.message),
        "service_tier": "default",
        **ECHOED,
        **told,
    }
