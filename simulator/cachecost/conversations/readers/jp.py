"""jp conversations: `.jp/conversations/ID-TITLE/events.json`, one JSON array of timed events.

How jp's events are converted (jp's own storage and Anthropic provider, 2026-03):

- Times are UTC without a zone. jp writes an event when it is *complete*, so a reply's `first_token_s` (first event of
  the reply − start of the call) bounds the time to the first token from above.
- A reply is the run of chat_response and tool_call_request events between two inputs. In jp all results of a reply come
  after all its requests, so a request that follows a result opens a new reply. (In the 14 recorded sessions the gap
  there is 2.1 s or more, the time of a call; within a run of requests it is 1.6 s or less.) turn_start and
  config_delta are no input and end no run.
- A reply's call started with the last input before it: the last tool result, or the human message.
- An inquiry stands where it was asked. k-th questions of a reply's different tool calls share a batch: they could have
  been asked in parallel, though jp asked one after another. An inquiry without an answer gets its default. Only tools'
  questions count as inquiries.
- Reasoning is a thinking block, with its signature if it is Anthropic's: another provider's would not be sent.
- Strings in arguments, results and metadata are base64, older ones URL-safe; a string that does not decode is kept
  unchanged, as jp does.
- The file has neither tools nor system prompt as sent, nor the content of attachments.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.structs import replace
from cachecost.conversations.input_files import Warn, quiet, read_input
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.model import Conversation, Event, Human, Inquiry, Reply, Results
from cachecost.conversations.readers.call_builder import parse_document
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.prompts.blocks import Block
from cachecost.prompts.request import block_of, show_found, text_block

SIGNATURE = "anthropic_thinking_signature"
REDACTED = "anthropic_redacted_thinking"
EFFORTS = {name: name for name in ("max", "high", "medium", "low")} | {"xhigh": "high", "xlow": "low", "none": "low"}
"""jp's effort -> the API's, as jp's Anthropic provider maps it; "auto" sends none."""


def sniff(head: bytes) -> str | None:
    """Why the first bytes of a file look like a jp conversation; None if they do not."""
    first = re.match(rb'\s*\[\s*\{[^{}\[\]]*?"type"\s*:\s*"(config_delta|turn_start|chat_request)"', head)
    return f"a JSON array of events that begins with {first[1].decode()}" if first else None


def read(path: str | Path, warn: Warn = quiet) -> Conversation:
    """The conversation of an events.json. Raises InputError with every error; what the file lacks goes to `warn`."""
    file, faults, builder = str(path), list[Fault](), ConversationBuilder()
    value = parse_document(Path(path), read_input(Path(path)))
    if not isinstance(value, list) or not value:
        faults.append(Fault(file, f"expected an array of events; got {'none' if value == [] else show_found(value)}"))
    for number, item in enumerate(value if isinstance(value, list) else []):
        data = item if isinstance(item, dict) else {}
        builder.add(JsonObject(data, faults, file, None, f"events[{number}]."))
    if faults:
        raise InputError(faults)
    # a title, which a model wrote, is no part of the name
    ids = (re.match(r"(?:jp-)?(?:c)?(\d{6,})", part) for part in (Path(path).name, Path(path).parent.name))
    return builder.conversation(next((f"jp-{match[1]}" for match in ids if match), "jp"), file, warn)


EVENTS = (
    *("config_delta", "turn_start", "chat_request", "chat_response", "tool_call_request", "tool_call_response"),
    *("inquiry_request", "inquiry_response"),
)


def _decode_strings(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _decode_strings(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_decode_strings(inner) for inner in value]
    if not isinstance(value, str):
        return value
    try:
        return b64decode(value.replace("-", "+").replace("_", "/"), validate=True).decode()
    except ValueError:
        return value


def words(answer: object) -> str:
    """An answer as text: a text unchanged, None as "", anything else as JSON."""
    if answer is None:
        return ""
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


@dataclass(slots=True)
class Settings:
    """The merged config deltas: the model (through its alias), the reasoning, beta headers, attachments."""

    aliases: dict[str, Any] = field(default_factory=dict)
    id: Any = None
    reasoning: Any = None
    betas: list[str] = field(default_factory=list)
    attachments: bool = False

    def merge(self, delta: Mapping[str, Any]) -> None:
        aliases = _within(delta, "providers", "llm", "aliases")
        self.aliases |= aliases if isinstance(aliases, dict) else {}
        self.id = _within(delta, "assistant", "model", "id") or self.id
        self.reasoning = _within(delta, "assistant", "model", "parameters", "reasoning") or self.reasoning
        betas = _within(delta, "providers", "llm", "anthropic", "beta_headers")
        self.betas = list(map(str, betas)) if isinstance(betas, list) else self.betas
        self.attachments |= bool(_within(delta, "conversation", "attachments"))

    @property
    def model(self) -> str | None:
        """The model's id, "provider/name" if the provider is not Anthropic; None without a model."""
        named = self.aliases.get(self.id, self.id) if isinstance(self.id, str) else self.id
        if isinstance(named, dict):
            named = f"{named.get('provider', '')}/{named.get('name', '')}"
        return str(named).removeprefix("anthropic/").strip("/") or None if named else None

    @property
    def params(self) -> dict[str, Any]:
        """Messages API parameters of the main thread, and the beta headers sent with it; {} for others' models."""
        if self.model is None or "/" in self.model:
            return {}
        betas = {"betas": self.betas} if self.betas else {}
        if self.reasoning is None or self.reasoning == "off":
            return betas if self.reasoning is None else {"thinking": {"type": "disabled"}, **betas}
        effort = EFFORTS.get(str(_within(self.reasoning, "effort")))
        config = {"output_config": {"effort": effort}} if effort else {}
        return {"thinking": {"type": "adaptive"}, **config, **betas}


def _within(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


class ConversationBuilder:
    """Builds a conversation from jp's events, which are added in order."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.first: tuple[str | None, dict[str, Any]] | None = None
        self.events: list[Event] = []
        self.notes = ReaderNotes()
        self._input_at: float | None = None
        self._reply: list[tuple[float, Block]] = []
        self._results: list[tuple[float, Block]] = []
        self._calls: set[str] = set()
        self._running: set[str] = set()
        self._open: defaultdict[str, deque[tuple[int, Inquiry]]] = defaultdict(deque)
        """The questions without an answer and their positions in `events`, by their ids."""
        self._asked_by: Counter[str] = Counter()
        self._batches: dict[tuple[int, int], int] = {}
        self._replies = 0

    def add(self, event: JsonObject) -> None:
        """Add an event of the file; what is wrong with it becomes an error."""
        kind, at = event.one_of("type", EVENTS), event.time("timestamp")
        match kind if event.data.get("type") == kind else "":
            case "config_delta":
                self.settings.merge(event.mapping("delta"))
            case "chat_request":
                self._end_reply()
                self._end_results()
                text, self._input_at = event.text("content"), at
                self.events += [Human(at, (text_block("user", text),))] if text else []
            case "chat_response":
                self._add_answer_block(event, at)
            case "tool_call_request":
                call, name = event.text("id"), event.text("name")
                arguments = _decode_strings(event.mapping("arguments", required=False))
                content = {"type": "tool_use", "id": call, "name": name, "input": arguments}
                self._add_block(at, block_of("assistant", content))
                self._calls.add(call)
                self._running.add(call)
            case "tool_call_response":
                call, failed = event.text("id"), {"is_error": True} if event.flag("is_error") else {}
                result = _decode_strings(event.text("content"))
                content = {"type": "tool_result", "tool_use_id": call, "content": result, **failed}
                self._end_reply()
                if call in self._running:
                    self._running.remove(call)
                    self._results.append((at, block_of("user", content)))
                    self._input_at = at
                else:
                    self.notes.skip("tool result", "no open tool call has its id")
            case "inquiry_request":
                self._add_question(event, at)
            case "inquiry_response":
                waiting = self._open[event.text("id")]
                if waiting:
                    place, inquiry = waiting.popleft()
                    answer = text_block("assistant", words(event.data.get("answer")))
                    self.events[place] = replace(inquiry, answer=answer)
                else:
                    self.notes.skip("answer", "no open question has its id")

    def _add_answer_block(self, event: JsonObject, at: float) -> None:
        if event.has("reasoning"):
            metadata = _decode_strings(event.mapping("metadata", required=False))
            signed = {"signature": metadata[SIGNATURE]} if SIGNATURE in metadata else {}
            content = {"type": "thinking", "thinking": event.text("reasoning"), **signed}
            if REDACTED in metadata:
                content = {"type": "redacted_thinking", "data": metadata[REDACTED]}
            self._add_block(at, block_of("assistant", content))
        elif event.has("data"):
            text = json.dumps(event.data["data"], ensure_ascii=False, separators=(",", ":"))
            self._add_block(at, text_block("assistant", text))
        elif text := event.text("message"):
            self._add_block(at, text_block("assistant", text))

    def _add_block(self, at: float, block: Block) -> None:
        self._end_results()
        now = (self.settings.model, self.settings.params)
        if self.first is None:
            self.first = now
        elif now != self.first and not self._reply:
            self.notes.add("reply", "with another model or other parameters than the first, which are used for all")
        self._reply.append((at, block))

    def _add_question(self, event: JsonObject, at: float) -> None:
        asked = event.within(event.mapping("question"), "question")
        text, kind = asked.text("text"), asked.data.get("answer_type", "boolean")
        if event.mapping("source", required=False).get("source", "tool") != "tool":
            self.notes.skip("question", "not asked by a tool")
            return
        answer_type = str(kind.get("type") if isinstance(kind, dict) else kind)
        id_ = event.text("id")
        self._end_reply()
        ends = [place for place, letter in enumerate(id_) if letter == "."]
        of_call = next((id_[:end] for end in reversed(ends) if id_[:end] in self._calls), id_.partition(".")[0])
        self._asked_by[of_call] += 1
        batch = self._batches.setdefault((self._replies, self._asked_by[of_call]), len(self._batches) + 1)
        default = text_block("assistant", words(asked.data.get("default")))  # until an answer comes
        inquiry = Inquiry(at, text_block("user", text), default, answer_type, of_call, batch)
        self._open[id_].append((len(self.events), inquiry))
        self.events.append(inquiry)

    def _end_reply(self) -> None:
        if not self._reply:
            return
        first = self._reply[0][0]
        started = first if self._input_at is None else self._input_at
        waited = None if self._input_at is None else round(max(0.0, first - started), 6)
        self.events.append(Reply(started, tuple(block for _, block in self._reply), waited))
        self._replies += 1
        self._reply = []

    def _end_results(self) -> None:
        if self._results:
            self.events.append(Results(self._results[-1][0], tuple(block for _, block in self._results)))
            self._results = []

    def conversation(self, name: str, file: str, warn: Warn) -> Conversation:
        """The whole, in jp's order. What the file lacks and what was skipped goes to `warn`."""
        self._end_reply()
        self._end_results()
        model, params = self.first or (None, {})
        unanswered = sum(map(len, self._open.values()))
        self.notes.add("inquiry", "without an answer: the default is used", unanswered)
        self.notes.add("tool call", "without a result", len(self._running))
        self.notes.report(file, warn)
        if self.events and not isinstance(self.events[-1], Reply):
            warn(f"{file}: the last turn has no reply")
        if self.first is None or self.first[0] is None:
            warn(f"{file}: no model is configured for the first reply")
        if self.settings.attachments:
            warn(f"{file}: attachments are listed, but their content is not in the file")
        return Conversation(name, tuple(self.events), model, params=params)
