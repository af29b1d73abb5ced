"""The session of one transcript, remembered in a small file, so that a status line reads only what was added.

Nothing here loads click, rules or prices unless a model is new: a status line has 60 ms.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from zlib import crc32

import msgspec

from cachecost.analysis.next_message.billed_models import BilledModel, FindModel, price_period
from cachecost.analysis.next_message.state import SessionState
from cachecost.base.digests import blake2b
from cachecost.base.version import __version__
from cachecost.conversations.billed_calls import BilledCall
from cachecost.sessions.file_tails import tail_digest

CONTENT = 1
"""To be raised when what is remembered changes."""
VERSION = crc32(f"{CONTENT} {__version__}".encode())
STORE_VARIABLE, NO_STORE = "CACHECOST_STORE", "off"
FOLDER = "working"
DAY_S = 86400
CHECKSUM_BYTES = 8
"""Before the content of a file, over the rest."""
KEPT_S = 30 * DAY_S
"""Files of sessions that were not used for so long are removed."""


class RememberedSession(msgspec.Struct, array_like=True):
    """A transcript as it was read last: `identity` is inode, size and time of the last change in nanoseconds.

    `models` are rules and prices by `_model_key`, `reader` what is needed to go on reading. `state` is None where the
    transcript has no call of a main thread.
    """

    version: int
    path: str
    identity: tuple[int, int, int]
    tail: bytes
    state: SessionState | None
    models: dict[str, BilledModel]
    reader: bytes
    blocked_at: float | None = None
    """When the call began after which a hook stopped a message: it stops one once."""


decode = msgspec.msgpack.Decoder(RememberedSession).decode
encode = msgspec.msgpack.Encoder().encode


def _checksum(data: bytes) -> bytes:
    return blake2b(data, digest_size=CHECKSUM_BYTES).digest()


def remembered_folder() -> Path | None:
    """Where sessions are remembered, beside the session store; None: nowhere."""
    named = os.environ.get(STORE_VARIABLE, "")
    if named == NO_STORE:
        return None
    if named:
        return Path(named).parent / FOLDER
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "cachecost" / FOLDER


class SessionMemory:
    """Reads one transcript: nothing where it is as it was, what was added where it has grown, else all of it."""

    def __init__(self, path: Path, folder: Path | None) -> None:
        self._path = path
        name = blake2b(os.fsencode(path.absolute()), digest_size=12).hexdigest()
        self._file = folder / f"{name}.session" if folder else None
        self._known = self._load()
        self.models: dict[str, BilledModel] = dict(self._known.models) if self._known else {}
        self._has_new_models = False

    def read(self) -> SessionState | None:
        """The state of the session; None where it has no call. Raises OSError, InputError."""
        status = self._path.stat()
        identity = status.st_ino, status.st_size, status.st_mtime_ns
        known = self._known
        if known is not None and known.identity == identity:
            return known.state
        before = known.reader if known is not None and self._has_grown(known, identity) else b""
        state, reader = read_transcript(self._path, before, self.find)
        self._known = RememberedSession(
            VERSION, str(self._path), identity, tail_digest(self._path, identity[1]), state, self.models, reader
        )
        self.save()
        return state

    def find(self, call: BilledCall, model: str = "") -> BilledModel:
        """The rules and prices of a call's model, or of another one: remembered, else looked up."""
        key = f"{model or call.model} {call.host} {price_period(call)} {' '.join(call.modes)}"
        if key not in self.models:
            self.models[key] = _look_up(call, model)
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
                self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                _remove_old(self._file.parent)
            data = encode(self._known)
            part.write_bytes(_checksum(data) + data)
            part.replace(self._file)

    def _load(self) -> RememberedSession | None:
        if self._file is None:
            return None
        with suppress(OSError, msgspec.MsgspecError, ValueError, TypeError):
            content = self._file.read_bytes()
            checksum, data = content[:CHECKSUM_BYTES], content[CHECKSUM_BYTES:]
            found = decode(data) if checksum == _checksum(data) else None
            return found if found and (found.version, found.path) == (VERSION, str(self._path)) else None
        return None

    def _has_grown(self, known: RememberedSession, identity: tuple[int, int, int]) -> bool:
        inode, size, _ = known.identity
        return inode == identity[0] and identity[1] > size and tail_digest(self._path, size) == known.tail


def read_transcript(path: Path, before: bytes, find: FindModel) -> tuple[SessionState | None, bytes]:
    """The state of a transcript, and what is needed to go on; `before` is what an earlier reading left."""
    from cachecost.analysis.next_message.history import session_state
    from cachecost.conversations.readers.claude_code.bill import TranscriptBill, decode_state

    try:
        bill = TranscriptBill(path, decode_state(before) if before else None)
    except (msgspec.DecodeError, TypeError):
        bill = TranscriptBill(path)
    file = bill.read()
    main = [call for call in file.calls if not call.agent]
    pending = bill.state.pending[main[-1].number - 1].events if main else []
    return session_state(file.calls, find, file.project, pending=pending), bill.saved_state


def _look_up(call: BilledCall, model: str) -> BilledModel:
    from cachecost.analysis.bill.call_prices import CallPrices
    from cachecost.analysis.next_message.billed_models import models_in
    from cachecost.providers.prices import PriceBook
    from cachecost.providers.rules import RuleBook

    return models_in(CallPrices(PriceBook(), RuleBook()))(call, model)


def _remove_old(folder: Path) -> None:
    """Remove the files of sessions that were not used for long."""
    import time

    oldest = time.time() - KEPT_S
    for file in folder.glob("*.session"):
        with suppress(OSError):
            if file.stat().st_mtime < oldest:
                file.unlink()
