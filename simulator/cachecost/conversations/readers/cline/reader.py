"""Reads what Cline, Roo Code and Kilo Code store of tasks, and sessions of Cline's SDK, as calls.

Usage, times, models and messages are the store's own. Missing parts are filled in as
`readers/common/session_calls.py` says; breakpoints as the clients place them for Claude: on the system prompt and the
last two user messages, in sessions of the SDK on the system prompt and the first message.

Tasks are those of Cline to 4.0, of Roo Code, and of Kilo Code to 5: `ui_messages.json` and the files beside it. A
session of Cline's SDK (its command line from 3, its extension from 4.1) is a folder `sessions/ID` with
`ID.messages.json` (the log: an answer and its usage in each assistant message) and `ID.json` (folder and model).
Sub-agents and teammates have their messages in `AGENT.messages.json` in the folder of the session that started them.
The messages of a session that was compacted begin with the summary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import msgspec

from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import count_text
from cachecost.base.times import seconds, seconds_from_ms
from cachecost.conversations.input_files import BilledCall, SessionFile, Warn, billed_call, open_input, read_input
from cachecost.conversations.readers.common import session_calls as common
from cachecost.conversations.readers.common.json_values import DAMAGED, Value, decode, decode_record
from cachecost.conversations.readers.common.peek import top_keys
from cachecost.providers.hosts import parse_model_name
from cachecost.providers.usage import Usage

Number = int | float | None
WHOLE_PROMPT_SINCE = seconds("2025-11-01T00:00:00Z")
"""Roo Code 3.29.5 (RooCodeInc/Roo-Code#8954): since then `tokensIn` includes what was read or written, for every
provider; before, for all but those with Anthropic's protocol. Kilo Code followed eleven days later."""
INCLUSIVE = frozenset(
    ("openai", "litellm", "doubao", "fireworks", "hicap", "lmstudio", "qwen", "qwen-code", "xai", "zai")
)
"""Providers whose usage Cline stores as they send it: the input includes what was read."""


class ModelInfo(msgspec.Struct, rename="camel"):
    """The model of a message: of a task of Cline (`modelId`), or of a session of its SDK (`id`)."""

    id: str = ""
    model_id: str = ""
    provider: str = ""
    provider_id: str = ""
    mode: str = ""


class UiMessage(msgspec.Struct, rename="camel"):
    """A message as Cline shows it. Those that say `api_req_started` are calls; `text` is then JSON (`CallInfo`)."""

    ts: Number = None
    type: str = ""
    say: str | None = None
    ask: str | None = None
    text: str | None = None
    partial: bool | None = None
    model_info: ModelInfo | None = None
    conversation_history_deleted_range: list[int] | None = None


class CallInfo(msgspec.Struct, rename="camel"):
    """The usage of a call, filled in when its answer ends. Before that, it has no counts."""

    tokens_in: Number = None
    tokens_out: Number = None
    cache_writes: Number = None
    cache_reads: Number = None
    api_protocol: str | None = None
    request: str | None = None
    cancel_reason: str | None = None
    streaming_failed_message: str | None = None

    @property
    def has_counts(self) -> bool:
        return bool(self.tokens_in or self.tokens_out or self.cache_reads or self.cache_writes)


class ModelUse(msgspec.Struct):
    """Since when a task used which model (`task_metadata.json`)."""

    ts: Number = None
    model_id: str = ""
    model_provider_id: str = ""


class TaskMetadata(msgspec.Struct):
    model_usage: list[ModelUse] = []


class TaskItem(msgspec.Struct, rename="camel"):
    """A task in a list of tasks: Roo Code's `history_item.json`, an entry of Cline's `state/taskHistory.json`."""

    id: str = ""
    workspace: str = ""
    cwd_on_task_initialization: str = ""
    root_task_id: str | None = None
    parent_task_id: str | None = None
    mode: str | None = None
    model_id: str = ""


class SentMessage(msgspec.Struct):
    """A message as it was sent; what is not decoded stays as it is written."""

    role: str = ""
    ts: Number = None
    content: msgspec.Raw = msgspec.Raw(b"")


class SdkMetrics(msgspec.Struct, rename="camel"):
    """The usage of one call in a session of the SDK. The input includes what was read or written."""

    input_tokens: Number = None
    output_tokens: Number = None
    cache_read_tokens: Number = None
    cache_write_tokens: Number = None


class SdkNote(msgspec.Struct, rename="camel"):
    """`kind` is "compaction_summary" for a summary in place of the history."""

    kind: str = ""
    display_only: bool | None = None


class SdkMessage(msgspec.Struct, rename="camel"):
    role: str = ""
    id: str = ""
    ts: Number = None
    content: msgspec.Raw = msgspec.Raw(b"")
    model_info: ModelInfo | None = None
    metrics: SdkMetrics | None = None
    metadata: SdkNote | None = None


class SdkOrigin(msgspec.Struct):
    version: str = ""


class SdkSession(msgspec.Struct, rename="camel"):
    """`agent` is "lead", "subagent" or "teammate"."""

    messages: list[SdkMessage]
    session_id: str = ""
    agent: str = ""
    origin: SdkOrigin | None = None


class SdkTotals(msgspec.Struct):
    """`usage` sums what the calls of the session itself were billed."""

    usage: SdkMetrics | None = None


class SdkManifest(msgspec.Struct):
    """The file of a session beside its messages."""

    cwd: str = ""
    provider: str = ""
    model: str = ""
    metadata: SdkTotals | None = None


def task_usage(info: CallInfo, provider: str, model: str, start: float | None, *, is_roo: bool) -> Usage:
    """The usage of a call of a task in Anthropic's convention. Raises ValueError with what is wrong with a number."""
    stated, read, write, output = _counts(info, "tokensIn", "cacheReads", "cacheWrites", "tokensOut")
    includes = provider in INCLUSIVE
    if is_roo:
        protocol = info.api_protocol or ("anthropic" if "claude" in model else "openai")
        includes = start is None or start >= WHOLE_PROMPT_SINCE or protocol != "anthropic"
    cached = read + write if includes and stated >= read + write else 0
    return Usage(stated - cached, read, write, 0, output)


def sdk_usage(metrics: SdkMetrics) -> Usage:
    """The usage of a call of an SDK session. Raises ValueError with what is wrong with a number."""
    stated, output, read, write = _counts(metrics, "inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
    if stated < read + write:
        raise ValueError(f"inputTokens: expected at least the {read + write} tokens read and written; got {stated}")
    return Usage(stated - read - write, read, write, 0, output)


def _counts(record: msgspec.Struct, *names: str) -> list[int]:
    values = msgspec.to_builtins(record)
    return [common.whole_tokens(values[name], name) for name in names]


def read_json(file: Path, kind: type[Value], faults: list[Fault]) -> Value | None:
    """The typed value of a file that may be missing: None, without an error, if it is."""
    if not file.is_file():
        return None
    try:
        data = read_input(file)
    except InputError as error:
        faults += error.faults
        return None
    return decode_record(data, kind, file, faults) if data.strip() else None


def count_blocks(raw: msgspec.Raw) -> int:
    """How many blocks the content of a message has; a text is one, and so is what is damaged."""
    try:
        return len(decode(raw, list[msgspec.Raw]))
    except DAMAGED:
        return 1


@lru_cache(maxsize=4)
def task_items(file: Path, _changed: int, _size: int) -> dict[str, TaskItem]:
    """Cline's list of tasks in one state of the file, by their ids: it is large, and every task has to look there."""
    found = read_json(file, list[TaskItem], [])
    return {item.id: item for item in found or []}


ENDING = ".messages.json"
MISSING = "of calls that are no longer stored"
SUMMARY = "compaction_summary"
RESULT, THINKING = b'"tool_result"', (b'"thinking"', b'"redacted_thinking"')


class ClineParser(common.StoreParser):
    """The calls of one file, one after another; errors and notes on the way."""

    def __init__(self, path: Path, keeps_content: bool) -> None:
        super().__init__(path, keeps_content)
        self.faults: list[Fault] = []
        self.chars = 0

    def read(self, faults: list[Fault], warn: Warn) -> common.Session:
        self.faults = faults
        return super().read(faults, warn)

    def next_call(self, bill: BilledCall, host: str | None, answer: Sequence[common.Piece] = ()) -> common.SessionCall:
        bill.host, bill.new_chars, self.chars = host or "", self.chars, 0
        self.chain.is_cut = "compaction" in self.chain.events
        return self.chain.add_call(bill, answer)

    def message(self, role: str, content: msgspec.Raw, place: str = "") -> list[common.Piece]:
        return [self.piece(role, content, place)] if bytes(content) else []


class SdkParser(ClineParser):
    """The calls of the messages of one session or sub-agent."""

    requests = staticmethod(partial(common.StoreRequests, marked=3, joins=False, marks_first=True))

    def __init__(self, path: Path, keeps_content: bool) -> None:
        super().__init__(path, keeps_content)
        self._manifest = SdkManifest()
        self._new_blocks = 0
        self._time: float | None = None

    def stored_calls(self, faults: list[Fault]) -> list[common.SessionCall]:
        session = decode_record(read_input(self.path), SdkSession, self.path, faults)
        if session is None:
            return []
        folder, own = self.path.absolute().parent.name, self.path.name.removesuffix(ENDING)
        self._manifest = read_json(self.path.with_name(f"{folder}.json"), SdkManifest, faults) or self._manifest
        is_agent = own not in (folder, session.session_id) or session.agent in ("subagent", "teammate")
        found = list(self._calls(session.messages, is_agent))
        metadata = self._manifest.metadata
        if not is_agent and metadata and metadata.usage:  # a compaction removes messages whose calls were billed
            stored = sum(call.bill.total_input + call.bill.tokens[4] for call in found)
            counted = int(metadata.usage.input_tokens or 0) + int(metadata.usage.output_tokens or 0)
            if counted > stored:
                self.notes.add("token", MISSING, counted - stored)
                self.session.notes.append(f"{count_text(counted - stored, 'token')} {MISSING}")
        for call in found:
            call.bill.session, call.bill.agent = folder, own if is_agent else ""
            call.thread, call.project = call.bill.agent, self._manifest.cwd
            call.bill.version = (session.origin or SdkOrigin()).version
            call.bill.id = f"cline {folder} {call.bill.id}"
        return found

    def _calls(self, messages: list[SdkMessage], is_agent: bool) -> Iterator[common.SessionCall]:
        for number, message in enumerate(messages):
            content = bytes(message.content)
            pieces = self.message(message.role, message.content, f"messages[{number}].content: ")
            if message.metadata and message.metadata.display_only:
                self.chain.events.add("error")
            elif message.role == "user":
                if message.metadata and message.metadata.kind == SUMMARY:
                    self.chain.events.add("compaction")
                elif not is_agent and RESULT not in content:
                    self.chain.events.add("human")
                self.chars += len(content)
                self._new_blocks += count_blocks(message.content)
                self.chain.request += pieces
            elif message.role == "assistant":
                usage = None
                try:
                    usage = sdk_usage(message.metrics) if message.metrics else None
                except ValueError as error:
                    self.faults.append(Fault(str(self.path), f"messages[{number}].metrics.{error}"))
                if usage is None or not (usage.total_input or usage.output_tokens):
                    self.notes.skip("answer", "no usage")  # it is part of the history of the next, and no call
                    self.chain.request += pieces
                else:
                    yield self._new_call(message, usage, message.id or str(number), pieces)
            self._time = seconds_from_ms(message.ts) or self._time

    def _new_call(self, message: SdkMessage, usage: Usage, name: str, answer: list[common.Piece]) -> common.SessionCall:
        named = message.model_info or ModelInfo()
        own = (named.id, named.provider) if named.id else (self._manifest.model, self._manifest.provider)
        model, host = parse_model_name(*own)
        end, content = seconds_from_ms(message.ts), bytes(message.content)
        start = self._time if self._time is not None else end
        bill = billed_call(0, model, usage, start, end, blocks=self._new_blocks, id=name)
        bill.has_thinking = any(kind in content for kind in THINKING)
        call = self.next_call(bill, host, answer)
        self._new_blocks, self.chars = count_blocks(message.content), len(content)
        return call


LOG, SENT = "ui_messages.json", "api_conversation_history.json"
STARTED = "api_req_started"
COMPACTIONS = ("condense_context", "sliding_window_truncation")
HUMAN = ("user_feedback", "user_feedback_diff", "task")
ROO_ITEM = "history_item.json"
ROO_FOLDERS = ("rooveterinaryinc.roo-cline", "kilocode.kilo-code", ".vscode-mock")
FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \(([^)\n]+)\)")
MODEL = re.compile(rb"<model>([^<\\]{1,200})</model>")
HISTORY_START = 1 << 18
"""Bytes of what was sent to look for the folder in: it stands in the first request."""


class TaskParser(ClineParser):
    """The calls of one task."""

    requests = staticmethod(partial(common.StoreRequests, marked=3, joins=False))

    def __init__(self, path: Path, keeps_content: bool) -> None:
        super().__init__(path, keeps_content)
        self._models: list[ModelUse] = []
        self._deleted: list[int] | None = None
        folders = path.absolute().parent.parts
        self._is_in_roo = any(part in ROO_FOLDERS for part in folders) or path.with_name(ROO_ITEM).is_file()

    def stored_calls(self, faults: list[Fault]) -> list[common.SessionCall]:
        messages = decode_record(read_input(self.path), list[UiMessage], self.path, faults)
        if not messages:
            return []
        found = list(self._calls(messages))
        item, own = self._item(), self.path.absolute().parent.name
        folder = item.workspace or item.cwd_on_task_initialization or self._folder(messages)
        for call in found:
            call.project = folder
            call.bill.session = (item.root_task_id or item.parent_task_id) if item.parent_task_id else own
            call.bill.agent = f"{item.mode or 'subtask'} {own[:8]}" if item.parent_task_id else ""
            call.thread = call.bill.agent
        if self.keeps:
            self._add_content(found)
        return found

    def _calls(self, messages: list[UiMessage]) -> Iterator[common.SessionCall]:
        self._models = self._model_uses()
        starts = [message.ts for message in messages if message.say == STARTED]
        following = iter([*starts[1:], None])
        for number, message in enumerate(messages):
            deleted = message.conversation_history_deleted_range
            if deleted and deleted != self._deleted:
                self.chain.events.add("compaction")
            self._deleted = deleted or self._deleted
            if message.say == STARTED:
                yield from filter(None, [self._call(message, number, next(following))])
            else:
                self.chars += len(message.text or "")
                if message.say in COMPACTIONS:
                    self.chain.events.add("compaction")
                elif message.say in HUMAN or number == 0:
                    self.chain.events.add("human")
                elif message.say == "api_req_retried" or message.ask == "api_req_failed":
                    self.chain.events.add("error")
                elif message.ask in ("resume_task", "resume_completed_task"):
                    self.chain.events.add("resume")

    def _call(self, message: UiMessage, number: int, following: Number) -> common.SessionCall | None:
        """The call of a message; None if it has no counts, or is damaged. `following` is when the next one began."""
        info = decode_record(message.text or "{}", CallInfo, self.path, self.faults, f"[{number}].text: ")
        if info is None:
            return None
        if not info.has_counts:
            self.chain.events |= {"error"} if info.streaming_failed_message else set()
            self.notes.skip("request", "no usage (stopped, or still running)")
            return None
        start, folder = seconds_from_ms(message.ts), self.path.absolute().parent
        provider, named = self._model(message, following)
        try:
            usage = task_usage(info, provider, named, start, is_roo=self._is_in_roo or info.api_protocol is not None)
        except ValueError as error:
            self.faults.append(Fault(str(self.path), f"[{number}].text.{error}"))
            return None
        model, host = parse_model_name(named, provider)
        bill_id = f"cline {folder.name} {message.ts}" if message.ts is not None else ""
        call = self.next_call(billed_call(0, model, usage, start, id=bill_id), host)
        self.chain.events |= {"error"} if info.streaming_failed_message else set()
        return call

    def _model_uses(self) -> list[ModelUse]:
        """Since when which model was used: as noted, or as the requests name it (Roo Code)."""
        metadata = read_json(self.path.with_name("task_metadata.json"), TaskMetadata, self.faults)
        if metadata and metadata.model_usage:
            return metadata.model_usage
        found, last = list[ModelUse](), 0.0
        for message in self._read_sent():
            last = message.ts or last
            if message.role == "user" and (names := MODEL.findall(bytes(message.content))):
                found.append(ModelUse(last, names[-1].decode("utf-8", "replace")))
        return found

    def _read_sent(self) -> list[SentMessage]:
        return read_json(self.path.with_name(SENT), list[SentMessage], self.faults) or []

    def _model(self, message: UiMessage, following: Number) -> tuple[str, str]:
        """(provider, model) of a call. What is noted of it comes after its start, and before that of the next one."""
        named = message.model_info
        if named and (named.model_id or named.id):
            return named.provider_id or named.provider, named.model_id or named.id
        if not self._models:
            return "", self._item().model_id
        known = [use for use in self._models if following is None or (use.ts or 0) < following]
        use = known[-1] if known else self._models[0]
        return use.model_provider_id, use.model_id

    def _item(self) -> TaskItem:
        if item := read_json(self.path.with_name(ROO_ITEM), TaskItem, self.faults):
            return item
        own = self.path.absolute().parent
        tasks = own.parent.parent / "state" / "taskHistory.json"
        try:
            state = tasks.stat()
        except OSError:
            return TaskItem()
        return task_items(tasks, state.st_mtime_ns, state.st_size).get(own.name) or TaskItem()

    def _folder(self, messages: list[UiMessage]) -> str:
        """The folder that the first request names."""
        started = next((message.text for message in messages if message.say == STARTED), None) or ""
        found = FOLDER.search(started.replace("\\n", "\n"))
        if found is None:
            with suppress(InputError), open_input(self.path.with_name(SENT)) as stream:
                found = FOLDER.search(stream.read(HISTORY_START).decode("utf-8", "replace"))
        return found[1].replace("\\\\", "\\") if found else ""

    def _add_content(self, found: list[common.SessionCall]) -> None:
        """The messages that each call sent, where what was sent has as many answers as there are calls. After a
        compaction it has fewer: then the calls have a bill alone."""
        sent = [message for message in self._read_sent() if message.role in ("user", "assistant")]
        answers = [number for number, message in enumerate(sent) if message.role == "assistant"]
        if len(answers) != len(found) or any(call.is_cut for call in found):
            self.notes.add("call", "without messages: what was sent was compacted or is missing", len(found))
            return
        pieces = [self.message(message.role, message.content) for message in sent]
        before = 0
        for call, at in zip(found, answers, strict=True):
            call.request = [piece for one in pieces[before:at] for piece in one]
            call.answer, before = pieces[at], at + 1


LACKS = (
    "Cline and Roo Code store neither tools nor breakpoints (sized by the bill; breakpoints as they place them), nor"
    " whether a write was for 5m or 1h (taken as 5m), nor the tokens of calls that condense a history"
)
SDK_KEYS = {"messages", "sessionId", "agent"}
MANIFEST_KEYS = {"session_id", "workspace_root", "messages_path"}
STARTED_SIGN = b'"api_req_started"'
CLIENTS = {"rooveterinaryinc.roo-cline": "roo-code", ".vscode-mock": "roo-code", "kilocode.kilo-code": "kilo-code"}
"""The client by the folder of its extension; "cline" elsewhere."""


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` is a task or a session of Cline; None if it is neither."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    keys = set(top_keys(text.removeprefix(b"[")))
    if text.startswith(b"{"):  # `messages` may be longer than the beginning: what comes before it decides
        if keys >= SDK_KEYS or {"version", "updated_at", "agent", "sessionId"} <= keys:
            return "its keys are those of the messages of a session of Cline"
        return "its keys are those of a session of Cline" if keys >= MANIFEST_KEYS else None
    is_task = text.startswith(b"[") and {"ts", "type"} <= keys and bool({"say", "ask"} & keys) and STARTED_SIGN in text
    return "an array of shown messages, one of which says api_req_started" if is_task else None


def is_companion(path: Path, folder: Path) -> bool:
    """Whether a file belongs to another one in `folder`: that of a session to its messages."""
    return not path.name.endswith(ENDING) and path.with_suffix(ENDING).is_file()


def parser_of(path: Path, keeps_content: bool) -> ClineParser:
    """What reads the calls of a file: a task's, or the messages of a session (also those beside a session's file)."""
    beside = path.with_suffix(ENDING)
    if path.name.endswith(ENDING):
        return SdkParser(path, keeps_content)
    if path.name != LOG and beside.is_file():
        return SdkParser(beside, keeps_content)
    return TaskParser(path, keeps_content)


def _to_blocks(role: str, content: Any) -> Iterator[common.RoleBlocks]:
    blocks = [common.text_body(content)] if isinstance(content, str) else content
    return common.blocks_of_role(role, blocks if isinstance(blocks, list) else [])


FORMAT = common.SessionFormat("cline", "Cline", parser_of, _to_blocks)
calls = FORMAT.calls


def session_files(path: Path) -> list[SessionFile]:
    """The calls of a task or session without content, for a bill. What is damaged is listed, the rest is counted.
    Raises InputError where the file cannot be read at all."""
    files = FORMAT.session_files(path)
    files[0].client = next((CLIENTS[part] for part in path.absolute().parts if part in CLIENTS), "cline")
    return files
