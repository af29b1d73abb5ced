"""The helper process: its options, starting it, sending it messages, and ending it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import date
from json import dumps
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

from cachecost.live.clock import ignore
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.hosts import AUTO_HOST
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import NO_OWN_RULES, RuleBook, own_rules
from cachecost.simulation.setup import ReplaySetup
from cachecost.tokens.factory import AUTO

NO_PAGE = -1


@dataclass(frozen=True, slots=True)
class HelperOptions:
    """Options of the helper process: rules, prices, the file, and whether it prints.

    `rules` are assumptions by name, `own` is a rules file, `prices` a price file, `as_of` a day in ISO 8601.
    `earlier_bytes` is how much of the file an earlier recorder wrote. With `digest` the file is without
    content. `page` is the descriptor of a socket that listens for its page.
    """

    path: str
    rules: dict[str, str] = field(default_factory=dict)
    own: str | None = None
    prices: str | None = None
    as_of: str | None = None
    host: str = AUTO_HOST
    earlier_bytes: int = 0
    prints: bool = True
    digest: bool = False
    page: int = NO_PAGE

    def setup(self) -> ReplaySetup:
        """The setup of predictions; tokens without a bill are counted as well as they can be. Raises InputError."""
        day = date.fromisoformat(self.as_of) if self.as_of else None
        prices = PriceBook.load(Path(self.prices) if self.prices else None, day)
        own = own_rules(Path(self.own)) if self.own else NO_OWN_RULES
        rules = RuleBook(assumptions_from({**own.assumptions, **self.rules}), day, own)
        return ReplaySetup(rules, prices, self.host, AUTO)


class RecorderHelper:
    """A process that predicts calls while they are recorded.

    `tell` never blocks: a thread writes the message. The process has its own session, so that Ctrl-C does not reach it;
    it exits when its input is closed. Another thread passes its exit code to `ended`, in any case.
    """

    def __init__(self, options: HelperOptions, ended: Callable[[int], None] = ignore) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cachecost.live.recorder.helper_main", dumps(asdict(options))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=() if options.page == NO_PAGE else (options.page,),
        )
        if sys.platform == "linux" and self._process.stdin is not None:
            import fcntl

            with suppress(OSError):  # the largest pipe that it gives every user (/proc/sys/fs/pipe-max-size)
                fcntl.fcntl(self._process.stdin.fileno(), fcntl.F_SETPIPE_SZ, 1 << 20)
        self._ended = ended
        self._messages: SimpleQueue[bytes | None] = SimpleQueue()
        self._writing = Thread(target=self._write_messages, name="watcher", daemon=True)
        self._waiting = Thread(target=self._wait, name="watcher end", daemon=True)
        self._writing.start()
        self._waiting.start()

    def tell(self, message: bytes) -> None:
        self._messages.put(message)

    def close(self) -> int:
        """Wait for its exit code. Ctrl-C and SIGTERM kill it: the caller still has a summary to print."""
        self._messages.put(None)
        try:
            self._join()
        except KeyboardInterrupt:
            self._ended = ignore
            self._process.kill()
            self._join()
        return self._process.wait()

    def _join(self) -> None:
        self._writing.join()
        self._waiting.join()

    def _wait(self) -> None:
        code = self._process.wait()
        self._ended(code)  # `close` may have replaced it meanwhile

    def _write_messages(self) -> None:
        stream = self._process.stdin
        assert stream is not None
        with suppress(BrokenPipeError):
            while (message := self._messages.get()) is not None:
                stream.write(message)
                stream.flush()
        with suppress(BrokenPipeError):
            stream.close()
        while message is not None:  # it has exited: drop further messages
            message = self._messages.get()
