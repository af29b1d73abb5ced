"""The status line itself: from Claude Code's JSON on stdin to one line on stdout, without click.

Reading stdin and writing have a deadline, as a client waits for the line. The session is remembered in a small file, so
that only what was added to its transcript is read.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from glob import escape
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO
from zlib import crc32

import msgspec

from cachecost.analysis.next_message.state import (
    BilledModel,
    Facts,
    FindModel,
    SessionState,
    last_miss,
    message_on,
    model_of_state,
    number_at,
    object_at,
    price_period,
    text_at,
    with_prompt_cache,
)
from cachecost.base.digests import blake2b
from cachecost.base.formatting import dollars
from cachecost.base.store import store_folder, tail_digest
from cachecost.base.version import __version__
from cachecost.conversations.input_files import BilledCall
from cachecost.views.next.words import DEFAULT_FORMAT, NEUTRAL, UnknownField, check_format, fill_format, line_fields

DEADLINE_S = 1.0
CONTENT = 2
"""To be raised when what is remembered changes."""
VERSION = crc32(f"{CONTENT} {__version__}".encode())
FOLDER = "working"
DAY_S = 86400
CHECKSUM_BYTES = 8
"""Before the content of a file, over the rest."""
KEPT_S = 30 * DAY_S
"""Files of sessions that were not used for so long are removed."""
FORMAT_VARIABLE = "CACHECOST_STATUSLINE"
MOST_BYTES = 4 << 20
"""More is no status of Claude Code's."""


def begin_deadline() -> None:
    """From here on reading stdin, and later writing, ends the process with 0 after DEADLINE_S."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _end)
        _set_alarm(DEADLINE_S)


def _end(number: int, frame: object) -> None:
    os._exit(0)


def _set_alarm(seconds: float) -> None:
    if hasattr(signal, "setitimer") and signal.getsignal(signal.SIGALRM) is _end:
        signal.setitimer(signal.ITIMER_REAL, seconds)


class RememberedSession(msgspec.Struct, array_like=True):
    """A transcript as it was read last: `identity` is inode, size and time of the last change in nanoseconds, `reader`
    what is needed to go on reading. `state` is None where the transcript has no call of a main thread."""

    version: int
    path: str
    identity: tuple[int, int, int]
    tail: bytes
    state: SessionState | None
    models: dict[str, BilledModel]
    reader: bytes
    earlier_static: int | None = None
    """The static prefix of the session's earlier part, where that is in another file (None: not looked up)."""
    blocked_at: float | None = None
    """When the call began after which a hook stopped a message: it stops one once."""


decode = msgspec.msgpack.Decoder(RememberedSession).decode
encode = msgspec.msgpack.Encoder().encode


def _checksum(data: bytes) -> bytes:
    return blake2b(data, digest_size=CHECKSUM_BYTES).digest()


def remembered_folder() -> Path | None:
    """Where sessions are remembered; None: nowhere."""
    folder = store_folder()
    return folder / FOLDER if folder else None


class SessionMemory:
    """Reads one transcript: nothing where it is as it was, what was added where it has grown, else all of it."""

    def __init__(self, path: Path, folder: Path | None) -> None:
        self._path = path
        name = blake2b(os.fsencode(path.absolute()), digest_size=12).hexdigest()
        self._file = folder / f"{name}.session" if folder else None
        self._known: RememberedSession | None = None
        with suppress(OSError, msgspec.MsgspecError, ValueError, TypeError):
            content = self._file.read_bytes() if self._file else b""
            checksum, data = content[:CHECKSUM_BYTES], content[CHECKSUM_BYTES:]
            found = decode(data) if checksum == _checksum(data) else None
            if found and (found.version, found.path) == (VERSION, str(path)):
                self._known = found
        self.models: dict[str, BilledModel] = dict(self._known.models) if self._known else {}
        self._has_new_models = False

    def read(self) -> SessionState | None:
        """The state of the session; None where it has no call. Raises OSError, InputError."""
        status = self._path.stat()
        if not S_ISREG(status.st_mode):  # a pipe may never end
            raise OSError(f"{self._path}: is not a regular file")
        identity = status.st_ino, status.st_size, status.st_mtime_ns
        before, earlier = b"", None
        if (known := self._known) is not None:
            if known.identity == identity:
                return known.state
            inode, size, _ = known.identity
            if inode == identity[0] and identity[1] > size and tail_digest(self._path, size) == known.tail:
                before, earlier = known.reader, known.earlier_static  # it has grown
        state, reader, earlier = read_transcript(self._path, before, self.find, earlier)
        tail = tail_digest(self._path, identity[1])
        self._known = RememberedSession(
            VERSION, str(self._path), identity, tail, state, self.models, reader, earlier_static=earlier
        )
        self.save()
        return state

    def find(self, call: BilledCall, model: str = "") -> BilledModel:
        """The rules and prices of a call's model, or of another one: remembered, else looked up."""
        key = f"{model or call.model} {call.host} {price_period(call)} {' '.join(call.modes)}"
        if key not in self.models:
            from cachecost.analysis.bill.call_prices import CallPrices
            from cachecost.analysis.next_message.state import models_in
            from cachecost.providers.prices import PriceBook
            from cachecost.providers.rules import RuleBook

            self.models[key] = models_in(CallPrices(PriceBook(), RuleBook()))(call, model)
            self._has_new_models = True
        return self.models[key]

    def note_block(self, last_used: float | None) -> bool:
        """Whether nothing was stopped since the last call; notes that something is now."""
        if self._known is None or self._file is None or self._known.blocked_at == last_used:
            return False
        self._known.blocked_at = last_used
        self.save()
        return True

    def save_models(self) -> None:
        """Remember models that were looked up since."""
        if self._has_new_models:
            self.save()

    def save(self) -> None:
        """Write the file; what cannot be written is read again next time."""
        if self._file is None or self._known is None:
            return
        self._has_new_models = False
        self._known.models = self.models
        part = self._file.with_name(f".{self._file.name}.{os.getpid()}")
        with suppress(OSError, UnicodeEncodeError):
            if not self._file.exists():
                folder, oldest = self._file.parent, time.time() - KEPT_S
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                for file in folder.glob("*.session"):
                    with suppress(OSError):
                        if file.stat().st_mtime < oldest:
                            file.unlink()
            data = encode(self._known)
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
                stream.write(_checksum(data) + data)
            part.replace(self._file)


def read_transcript(
    path: Path, before: bytes, find: FindModel, earlier: int | None = None
) -> tuple[SessionState | None, bytes, int | None]:
    """The state of a transcript, what is needed to go on, and the static prefix of the session's earlier part; `before`
    and `earlier` are what an earlier reading left."""
    from cachecost.analysis.next_message.history import CONTINUED, session_state
    from cachecost.conversations.readers.claude_code.transcript import Transcript, decode_state

    try:
        bill = Transcript(path, decode_state(before) if before else None)
    except (msgspec.DecodeError, TypeError):
        bill = Transcript(path)
    file = bill.read()
    main = [call for call in file.calls if not call.agent]
    pending = bill.state.pending[main[-1].number - 1].events if main else []
    if earlier is None and main and CONTINUED in main[0].events:
        earlier = _earlier_static(path, main[0].session)
    state = session_state(file.calls, find, file.project, pending=pending, earlier_static=earlier or 0)
    return state, bill.saved_state, earlier


def _earlier_static(path: Path, session: str) -> int:
    """The static prefix of a session from its other files, which are beside this one; 0: unknown."""
    from cachecost.analysis.next_message.history import static_prefix
    from cachecost.base.errors import InputError
    from cachecost.conversations.readers.claude_code.transcript import Transcript

    found: list[tuple[float, int]] = []
    for other in path.parent.glob(f"{escape(session)}*.jsonl") if session else ():
        if other.name == path.name:
            continue
        with suppress(OSError, InputError):
            main = [call for call in Transcript(other).read().calls if not call.agent and call.session == session]
            if main and (static := static_prefix(main)):
                found.append((main[0].start or 0.0, static))
    return min(found, default=(0.0, 0))[1]


def main(arguments: Sequence[str]) -> int:
    """Print the line for the JSON on stdin. Always 0, and a neutral line where anything fails."""
    words = [part for word in arguments for part in (word.split("=", 1) if word.startswith("--format=") else [word])]
    form = os.environ.get(FORMAT_VARIABLE) or DEFAULT_FORMAT
    if "--format" in words[:-1]:
        form = words[words.index("--format") + 1]
    line, problem = status_line(sys.stdin.buffer, form, time.time())
    write_line(line)
    if problem:
        sys.stderr.write(f"cachecost statusline: {problem}\n")
    return 0


def status_line(stream: BinaryIO, form: str, now: float) -> tuple[str, str]:
    """The line, and what was wrong (empty: nothing)."""
    try:
        check_format(form)
        facts = read_facts(stream)
        if not facts:
            return NEUTRAL, ""
        cache, model = object_at(facts, "prompt_cache"), text_at(object_at(facts, "model"), "id")
        cost = number_at(object_at(facts, "cost"), "total_cost_usd")
        counted = "" if cost is None else dollars(Decimal(str(cost)))
        others = {"client_cost": counted, "last_miss": last_miss(cache), **({"cost": counted} if counted else {})}
        path = text_at(facts, "transcript_path")
        memory = SessionMemory(Path(path), remembered_folder()) if path else None
        state = memory.read() if memory else None
        if memory is None or state is None:  # the session has no call yet
            return fill_format(form, {**others, "model": model}), ""
        state = with_prompt_cache(state, cache, now)
        asked = model.partition("[")[0]
        message = message_on(state, asked, model_of_state(state, memory.find, asked, now).quote, now)
        memory.save_models()
        fields = line_fields(state, message, now, clock_time, others) | ({"model": asked} if asked else {})
        return fill_format(form, fields), ""
    except UnknownField as error:
        return NEUTRAL, str(error)
    except Exception:  # a status line never fails loudly
        return NEUTRAL, ""


def read_facts(stream: BinaryIO) -> Facts:
    """The object that a client writes to stdin; empty where it writes none."""
    text = stream.read(MOST_BYTES + 1)
    _set_alarm(0.0)
    if len(text) > MOST_BYTES or not text.strip():
        return {}
    found = msgspec.json.decode(text)
    return found if isinstance(found, Mapping) else {}


def write_line(text: str) -> None:
    """Write a line to stdout as UTF-8, whatever the locale: clients read it so."""
    _set_alarm(DEADLINE_S)
    sys.stdout.buffer.write(f"{text}\n".encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def clock_time(at: float) -> str:
    """A time of the day as this machine shows it; with the date where it is not within a day."""
    form = "%H:%M" if abs(at - time.time()) < 12 * 3600 else "%m-%d %H:%M"
    return time.strftime(form, time.localtime(at))
