"""The entry point of the `cachecost` command: what a client runs while it waits starts without click."""

from __future__ import annotations

import sys

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
        sys.exit(import_module(f"cachecost.commands.{QUICK[words[0]]}").main(words[1:]))
    from cachecost.cli import main as run

    run()


if __name__ == "__main__":
    main()
