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
        _end(import_module(f"cachecost.commands.{QUICK[words[0]]}").main(words[1:]))
    from cachecost.cli import main as run

    run()


def _end(code: int) -> NoReturn:
    """End the process without freeing its memory first, which takes milliseconds."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
