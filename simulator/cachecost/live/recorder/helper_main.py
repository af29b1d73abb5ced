"""The helper process. It is started by helper.py with its options as JSON, and reads messages from stdin, one per line.

It reads from its first moment, before it imports what it needs for them: messages that it has are not lost when the
recorder is killed.
"""

from __future__ import annotations

import os
import sys
from json import loads
from queue import Queue
from threading import Thread

CHUNK = 1 << 16
Inbox = Queue[bytes | None]


def _listen(descriptor: int, inbox: Inbox) -> None:
    """Put whole lines into the inbox. It bypasses sys.stdin, whose lock in a thread would abort the exit."""
    parts: list[bytes] = []
    while data := os.read(descriptor, CHUNK):
        first, *others = data.split(b"\n")
        parts.append(first)
        for part in others:
            inbox.put(b"".join(parts))
            parts = [part]
    inbox.put(None)


def main(options: str, descriptor: int) -> int:
    inbox: Inbox = Queue()
    Thread(target=_listen, args=(descriptor, inbox), daemon=True).start()
    from cachecost.live.recorder.helper import HelperOptions
    from cachecost.live.recorder.helper_loop import HelperLoop, say

    parsed = HelperOptions(**loads(options))
    try:
        HelperLoop(parsed).run(inbox)
    except Exception as error:  # the recorder goes on without this process, and says so
        say(f"{parsed.path}: {type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.stdin.fileno()))
