"""One LangSmith run of type llm: its request, answer and times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cachecost.base.times import iso
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.common.dialects import Body, answer_of, body_from, parse_json_text
from cachecost.conversations.readers.common.json_values import object_or_empty
from cachecost.conversations.readers.common.traces import as_text
from cachecost.conversations.readers.langsmith.langchain_messages import answer_blocks, body_from_request, plain
from cachecost.prompts.wire import NotAMessage, show_found
from cachecost.providers.hosts import parse_model_name

THREADS = ("session_id", "thread_id", "conversation_id")
"""Keys of the metadata that LangSmith groups traces by."""
MODELS = ("model", "model_name", "model_id", "deployment_name", "azure_deployment")
Mapped = Mapping[str, Any]


class LangSmithRun:
    """A run. Raises NotAMessage if its answer is not a message."""

    def __init__(self, row: JsonObject) -> None:
        self.row = row
        self.inputs, self.outputs, self.extra = (_part(row, name) for name in ("inputs", "outputs", "extra"))
        self.metadata = object_or_empty(self.extra.get("metadata"))
        self.invocation = object_or_empty(self.extra.get("invocation_params"))
        self.generation = _generation(self.outputs)
        self.message = _message(self.generation, self.outputs)

    def model_and_host(self) -> tuple[str, str | None]:
        """(model, host). The model is that of the request, else that of the answer, else ""."""
        asked = [place.get(name) for place in (self.invocation, self.inputs) for name in MODELS]
        answered = [object_or_empty(self.message.get("response_metadata")).get(name) for name in MODELS]
        found = [*asked, self.metadata.get("ls_model_name"), *answered, self.outputs.get("model")]
        provider = str(self.metadata.get("ls_provider") or "")
        model = next((name for name in found if isinstance(name, str) and name), "")
        return parse_model_name(model, provider)

    def session(self) -> str:
        """The id of the conversation, else of the trace."""
        names = [*(self.metadata.get(name) for name in THREADS), self.row.data.get("trace_id")]
        return next((str(name) for name in names if name), "")

    def body(self, model: str) -> tuple[Body, str]:
        """(Messages body, note for the user or ""). Raises NotAMessage."""
        request = {**self.invocation, **self.inputs, "model": model}
        prompts = self.inputs.get("prompts") or self.inputs.get("prompt")
        if "messages" in self.inputs:
            return body_from_request({**request, "messages": _one_conversation(self.inputs["messages"])}), ""
        if "input" in self.inputs:
            return body_from(request), ""
        if prompts:
            alone = prompts[0] if isinstance(prompts, list) and len(prompts) == 1 else prompts
            return body_from_request({**request, "messages": as_text(alone)}), ""
        if self.inputs:
            return {"messages": as_text(self.inputs)}, "whose input is not a list of messages: read as one text"
        return {"messages": []}, "without messages: only usage is known"

    def answer(self) -> list[Body] | str:
        """The blocks that came back. Raises NotAMessage."""
        if self.message:
            return answer_blocks(self.message)
        text = self.generation.get("text")
        return text if isinstance(text, str) and text else answer_of(self.outputs)

    def start(self) -> str | None:
        return _moment(self.row, "start_time")

    def first_token(self) -> str | None:
        """When the first token came: in its own column, or as an event."""
        for event in self.row.objects("events") if self.row.has("events") else ():
            if event.data.get("name") == "new_token":
                return _moment(self.row, "first_token_time") or _moment(event, "time")
        return _moment(self.row, "first_token_time")


def _part(row: JsonObject, name: str) -> Mapped:
    """An object of a run. Database rows contain it as a JSON string."""
    value = parse_json_text(row.data.get(name))
    if value and not isinstance(value, Mapping):
        row.fault(name, f"expected an object; got {show_found(value)}")
    return object_or_empty(value)


def _generation(outputs: Mapped) -> Mapped:
    """The first of several candidates."""
    found: Any = outputs.get("generations")
    while isinstance(found, list) and found:
        found = found[0]
    return object_or_empty(found)


def _message(generation: Mapped, outputs: Mapped) -> dict[str, Any]:
    """The answer as a message; empty if there is none, or if it is another API's."""
    several = outputs.get("messages")
    last = several[-1] if isinstance(several, list) and several else None
    flat = outputs if "content" in outputs or "tool_calls" in outputs else None
    for told in (generation.get("message"), outputs.get("message"), flat, last):
        if isinstance(told, Mapping):
            return plain({"role": "assistant", **told}, "outputs")
    return {}


def _one_conversation(messages: Any) -> Any:
    """The messages. LangChain may wrap them in a list of conversations, which must have one element."""
    if not isinstance(messages, list) or not messages or not isinstance(messages[0], list):
        return messages
    if len(messages) > 1:
        raise NotAMessage("inputs.messages", "one conversation per run", f"{len(messages)} conversations")
    return messages[0]


def _moment(row: JsonObject, name: str) -> str | None:
    """An ISO 8601 time; tracers in JavaScript count milliseconds."""
    value = row.data.get(name)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e14:
        return iso(value / 1000)
    return row.moment(name)
