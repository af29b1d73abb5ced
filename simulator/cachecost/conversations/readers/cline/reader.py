"""Reads what Cline, Roo Code and Kilo Code store of tasks, and sessions of Cline's SDK, as calls.

Usage, times, models and messages are the store's own (see sessions.py). Missing parts are filled in as
`readers/common/session_calls.py` says; breakpoints as the clients place them for Claude: on the system prompt and the
last two user messages, in sessions of the SDK on the system prompt and the first message.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cachecost.base.errors import InputError
from cachecost.base.formatting import count_text
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import SessionFile, Warn, quiet
from cachecost.conversations.readers.cline.sessions import ENDING, LOG, MISSING, SdkCalls, TaskCalls
from cachecost.conversations.readers.common.peek import top_keys
from cachecost.conversations.readers.common.session_calls import Session, StoreRequests, billed_calls, number_calls

LACKS = (
    "Cline and Roo Code store neither tools nor breakpoints (sized by the bill; breakpoints as they place them), nor"
    " whether a write was for 5m or 1h (taken as 5m), nor the tokens of calls that condense a history"
)
SDK_KEYS = {"messages", "sessionId", "agent"}
MANIFEST_KEYS = {"session_id", "workspace_root", "messages_path"}
STARTED = b'"api_req_started"'
CLIENTS = {"rooveterinaryinc.roo-cline": "roo-code", ".vscode-mock": "roo-code", "kilocode.kilo-code": "kilo-code"}
"""The client by the folder of its extension; "cline" elsewhere."""


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` is a task or a session of Cline; None if it is neither."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        return _session_reason(text)
    keys = set(top_keys(text.removeprefix(b"[")))
    is_task = text.startswith(b"[") and {"ts", "type"} <= keys and bool({"say", "ask"} & keys) and STARTED in text
    return "an array of shown messages, one of which says api_req_started" if is_task else None


def _session_reason(text: bytes) -> str | None:
    """`messages` may be longer than the beginning: what comes before it decides."""
    keys = set(top_keys(text))
    if keys >= SDK_KEYS or {"version", "updated_at", "agent", "sessionId"} <= keys:
        return "its keys are those of the messages of a session of Cline"
    return "its keys are those of a session of Cline" if keys >= MANIFEST_KEYS else None


def is_companion(path: Path, folder: Path) -> bool:
    """Whether a file belongs to another one in `folder`: that of a session to its messages."""
    return not path.name.endswith(ENDING) and path.with_suffix(ENDING).is_file()


def stored_calls_of(path: Path, with_content: bool) -> TaskCalls | SdkCalls:
    """What reads the calls of a file: a task's, or the messages of a session (also those beside a session's file)."""
    beside = path.with_suffix(ENDING)
    if path.name.endswith(ENDING):
        return SdkCalls(path, with_content)
    if path.name != LOG and beside.is_file():
        return SdkCalls(beside, with_content)
    return TaskCalls(path, with_content)


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[RecordedCall]:
    """The calls in the order of their times. Raises InputError with every error."""
    stored = stored_calls_of(path, with_content=True)
    found = number_calls(stored.calls())
    stored.notes.report(path, warn)
    requests = StoreRequests(path, "Cline", keep_content, stored.faults, marked=3, joins=False)
    requests.marks_first = isinstance(stored, SdkCalls)
    yield from requests.calls(Session(calls=found))
    if stored.faults:
        raise InputError(stored.faults)


def session_files(path: Path) -> list[SessionFile]:
    """The calls of a task or session without content, for a bill. What is damaged is listed, the rest is counted.

    Raises InputError where the file cannot be read at all.
    """
    stored = stored_calls_of(path, with_content=False)
    found = number_calls(stored.calls())
    own = str(stored.path)
    damaged = tuple(
        (fault.line or 0, fault.message if fault.file == own else f"{Path(fault.file).name}: {fault.message}")
        for fault in stored.faults
    )
    client = next((CLIENTS[part] for part in path.absolute().parts if part in CLIENTS), "cline")
    missing = stored.missing if isinstance(stored, SdkCalls) else 0
    notes = (f"{count_text(missing, 'token')} {MISSING}",) if missing else ()
    project = found[0].project if found else ""
    return [SessionFile(str(path), client, project, billed_calls(found), damaged, notes)]
