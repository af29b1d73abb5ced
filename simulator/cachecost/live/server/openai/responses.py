"""OpenAI's Responses: POST /v1/responses. Wire form: the API reference and the types of openai 3.54."""

from __future__ import annotations

from collections.abc import Iterator

from cachecost.conversations.readers.openai.responses import from_responses
from cachecost.live.server.arrival import ReceivedCall
from cachecost.live.server.errors import invalid
from cachecost.live.server.message import as_bytes
from cachecost.live.server.model import ApiError
from cachecost.live.server.openai.checks import body_fault
from cachecost.live.server.openai.either_api import MAKER, OpenAIApi, shown_model
from cachecost.live.server.openai.items import item_events, items_of
from cachecost.live.server.openai.usage import responses_usage
from cachecost.live.server.served_api import ServedResponse, Wire
from cachecost.live.server.state import ServerState
from cachecost.live.server.threads import ResolvedCall

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
