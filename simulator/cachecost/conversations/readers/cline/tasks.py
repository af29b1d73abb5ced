"""Tasks of Cline (to 4.0), Roo Code and Kilo Code (to 5) as calls.

A task is a folder `tasks/ID` with `ui_messages.json` (what is shown, with the usage: the log),
`api_conversation_history.json` (what is sent), `task_metadata.json` (Cline: which model since when) and
`history_item.json` (Roo Code: folder and parent).

- A message that says `api_req_started` is one call. Without counts it was stopped or is still running: no call.
- The model is that of the message (Cline since 3.x), else of the metadata, else what the request says in its
  `<model>` (Roo Code), else that of the list of tasks.
- Roo Code: `condense_context` and `sliding_window_truncation` say that the history was compacted. Cline: the range of
  messages that it left out changes.
- A task that another one started (`parentTaskId`) is a sub-agent's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault
from cachecost.conversations.input_files import read_input
from cachecost.conversations.readers.cline.files import content_blocks, decode, read_json, read_start, task_items
from cachecost.conversations.readers.cline.records import (
    CallInfo,
    ModelUse,
    Number,
    SentMessage,
    TaskItem,
    TaskMetadata,
    UiMessage,
    task_usage,
    to_seconds,
)
from cachecost.conversations.readers.common.notes import ReaderNotes
from cachecost.conversations.readers.common.stored_calls import StoredCall
from cachecost.providers.hosts import parse_model_name
from cachecost.providers.usage import Usage

LOG, SENT = "ui_messages.json", "api_conversation_history.json"
STARTED = "api_req_started"
COMPACTIONS = ("condense_context", "sliding_window_truncation")
HUMAN = ("user_feedback", "user_feedback_diff", "task")
ROO_FOLDERS = ("rooveterinaryinc.roo-cline", "kilocode.kilo-code", ".vscode-mock")
FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \(([^)\n]+)\)")
MODEL = re.compile(rb"<model>([^<\\]{1,200})</model>")
HISTORY_START = 1 << 18
"""Bytes of what was sent to look for the folder in: it stands in the first request."""


@dataclass(slots=True)
class TaskCalls:
    """The calls of one task; errors and notes on the way."""

    path: Path
    with_content: bool
    faults: list[Fault] = field(default_factory=list)
    notes: ReaderNotes = field(default_factory=ReaderNotes)
    _models: list[ModelUse] = field(default_factory=list)
    _events: set[str] = field(default_factory=set)
    _deleted: list[int] | None = None
    _chars: int = 0
    _last: StoredCall | None = None
    _is_in_roo: bool | None = None

    def calls(self) -> list[StoredCall]:
        """The calls in their order. Raises InputError where the file cannot be read."""
        messages = decode(read_input(self.path), list[UiMessage], self.path, self.faults)
        if not messages:
            return []
        found = list(self._calls(messages))
        self._place(found, messages)
        if self.with_content:
            self._add_content(found, messages)
        return found

    # ------------------------------------------------------------------------------------------ what is shown

    def _calls(self, messages: list[UiMessage]) -> Iterator[StoredCall]:
        self._models = self._model_uses()
        starts = [message.ts for message in messages if message.say == STARTED]
        following = iter([*starts[1:], None])
        for number, message in enumerate(messages):
            self._take_range(message)
            if message.say == STARTED:
                call = self._call(message, number, next(following))
                if call is not None:
                    yield call
            else:
                self._take_event(message, is_first=number == 0)

    def _take_range(self, message: UiMessage) -> None:
        """Cline leaves out another part of the history."""
        deleted = message.conversation_history_deleted_range
        if deleted and deleted != self._deleted:
            self._events.add("compaction")
        self._deleted = deleted or self._deleted

    def _take_event(self, message: UiMessage, *, is_first: bool) -> None:
        self._chars += len(message.text or "")
        if message.say in COMPACTIONS:
            self._events.add("compaction")
        elif message.say in HUMAN or is_first:
            self._events.add("human")
        elif message.say == "api_req_retried" or message.ask == "api_req_failed":
            self._events.add("error")
        elif message.ask in ("resume_task", "resume_completed_task"):
            self._events.add("resume")

    def _call(self, message: UiMessage, number: int, following: Number) -> StoredCall | None:
        """The call of a message; None if it has no counts, or is damaged. `following` is when the next one began."""
        info = decode(message.text or "{}", CallInfo, self.path, self.faults, f"[{number}].text: ")
        if info is None:
            return None
        if not info.has_counts:
            self._events |= {"error"} if info.streaming_failed_message else set()
            self.notes.skip("request", "no usage (stopped, or still running)")
            return None
        start = to_seconds(message.ts)
        provider, model = self._model(message, following)
        usage = self._usage(info, provider, model, start, number)
        return None if usage is None else self._new_call(message, info, usage, model, provider, start)

    def _usage(self, info: CallInfo, provider: str, model: str, start: float | None, number: int) -> Usage | None:
        try:
            return task_usage(info, provider, model, start, is_roo=self._is_roo(info))
        except ValueError as error:
            self.faults.append(Fault(str(self.path), f"[{number}].text.{error}"))
            return None

    def _new_call(
        self, message: UiMessage, info: CallInfo, usage: Usage, model: str, provider: str, start: float | None
    ) -> StoredCall:
        own, host = parse_model_name(model, provider)
        call = StoredCall(own, usage, host, start, before=self._last, new_chars=self._chars)
        if self._last is not None and (self._last.model, self._last.host) != (own, host):
            self._events.add("model")
        call.events, call.is_cut = frozenset(self._events), "compaction" in self._events
        call.id = f"cline {self.path.absolute().parent.name} {message.ts}" if message.ts is not None else ""
        self._last, self._events = call, {"error"} if info.streaming_failed_message else set()
        self._chars = 0
        return call

    def _is_roo(self, info: CallInfo) -> bool:
        """Whether Roo Code or Kilo Code wrote the task: Cline stores no protocol."""
        if self._is_in_roo is None:
            is_in_folder = any(part in ROO_FOLDERS for part in self.path.absolute().parts)
            self._is_in_roo = is_in_folder or self.path.with_name("history_item.json").is_file()
        return self._is_in_roo or info.api_protocol is not None

    # -------------------------------------------------------------------------------- models, folder and parent

    def _model_uses(self) -> list[ModelUse]:
        """Which model since when: of the metadata, else of what was sent."""
        metadata = read_json(self.path.with_name("task_metadata.json"), TaskMetadata, self.faults)
        if metadata and metadata.model_usage:
            return metadata.model_usage
        return list(_named_models(self._read_sent()))

    def _read_sent(self) -> list[SentMessage]:
        """What was sent."""
        return read_json(self.path.with_name(SENT), list[SentMessage], self.faults) or []

    def _model(self, message: UiMessage, following: Number) -> tuple[str, str]:
        """(provider, model) of a call. What is noted of it comes after its start, and before that of the next one."""
        if message.model_info and (message.model_info.model_id or message.model_info.id):
            told = message.model_info
            return told.provider_id or told.provider, told.model_id or told.id
        if not self._models:
            return "", self._item().model_id
        known = [use for use in self._models if following is None or (use.ts or 0) < following]
        use = known[-1] if known else self._models[0]
        return use.model_provider_id, use.model_id

    def _place(self, found: list[StoredCall], messages: list[UiMessage]) -> None:
        """Session, folder and agent of all calls."""
        item, own = self._item(), self.path.absolute().parent.name
        folder = item.workspace or item.cwd_on_task_initialization or self._folder(messages)
        for call in found:
            call.project = folder
            call.session = (item.root_task_id or item.parent_task_id) if item.parent_task_id else own
            call.agent = f"{item.mode or 'subtask'} {own[:8]}" if item.parent_task_id else ""

    def _item(self) -> TaskItem:
        item = read_json(self.path.with_name("history_item.json"), TaskItem, self.faults)
        own = self.path.absolute().parent
        tasks = own.parent.parent / "state" / "taskHistory.json"
        return item or task_items(tasks).get(own.name) or TaskItem()

    def _folder(self, messages: list[UiMessage]) -> str:
        """The folder that the first request names."""
        started = next((message.text for message in messages if message.say == STARTED), None) or ""
        sent = self.path.with_name(SENT)
        start = started.replace("\\n", "\n")
        found = FOLDER.search(start) or FOLDER.search(read_start(sent, HISTORY_START).decode("utf-8", "replace"))
        return found[1].replace("\\\\", "\\") if found else ""

    # ------------------------------------------------------------------------------------------ what was sent

    def _add_content(self, found: list[StoredCall], messages: list[UiMessage]) -> None:
        """The messages that each call sent, where what was sent has as many answers as there are calls.

        After a compaction it has fewer: then the calls have a bill alone.
        """
        sent = [message for message in self._read_sent() if message.role in ("user", "assistant")]
        answers = [number for number, message in enumerate(sent) if message.role == "assistant"]
        if len(answers) != len(found) or any(call.is_cut for call in found):
            self.notes.add("call", "without messages: what was sent was compacted or is missing", len(found))
            return
        before = 0
        for call, at in zip(found, answers, strict=True):
            call.messages = [{"role": message.role, "content": self._blocks(message)} for message in sent[before:at]]
            call.answer, before = self._blocks(sent[at]), at + 1

    def _blocks(self, message: SentMessage) -> list[Any]:
        try:
            return content_blocks(message.content)
        except ValueError as error:
            self.faults.append(Fault(str(self.path.with_name(SENT)), str(error)))
            return []


def _named_models(sent: list[SentMessage]) -> Iterator[ModelUse]:
    """The models that the requests name, each since its time (Roo Code)."""
    last: float = 0
    for message in sent:
        last = message.ts or last
        if message.role == "user" and (found := MODEL.findall(bytes(message.content))):
            yield ModelUse(last, found[-1].decode("utf-8", "replace"))
