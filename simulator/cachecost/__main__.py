"""The entry point of the `cachecost` command: what a client runs while it waits starts without click."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn

HELP = ("-h", "--help")
QUICK = {"statusline": "statusline_run", "hook": "hook_run"}
"""Commands that a client waits for, and their modules in `commands`."""


def main() -> None:
    """Run the command in `sys.argv`; never returns."""
    words = sys.argv[1:]
    if words and words[0] in QUICK and not any(word in HELP for word in words):
        import gc
        from importlib import import_module

        gc.disable()  # the process is too short for a collection to find anything
        with suppress(BaseException):  # a client waits for it: whatever its streams are, it ends well and says nothing
            from cachecost.commands.statusline_run import begin_deadline

            begin_deadline()
            open_closed_streams()
            import_module(f"cachecost.commands.{QUICK[words[0]]}").main(words[1:])
        _end(0)
    from cachecost.cli import main as run

    run()


def open_closed_streams() -> None:
    """Streams that the caller closed are None in Python: they read nothing and write nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - until the end


def _end(code: int) -> NoReturn:
    """End the process without freeing its memory first, which takes milliseconds."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
