"""The readers that give the calls of a session file for its bill, by format."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from cachecost.conversations.input_files import SessionFile


@dataclass(frozen=True, slots=True)
class BillReader:
    """How the bills of a format are read: its `module` has `session_file(path)`, or `session_files(path)` for several.

    `is_whole`: a log is one file, so that what was read of it holds until that file changes. `continues`: the module
    has `read_sessions(path, state)` and goes on where an earlier reading ended.
    """

    module: str
    is_whole: bool = True
    continues: bool = False

    def read(self, path: Path, state: bytes) -> tuple[list[SessionFile], bytes]:
        """The sessions in a file, and what is needed to go on where it ends now (b"": nothing helps).

        Raises InputError where the file cannot be read.
        """
        module: Any = import_module(f"cachecost.conversations.readers.{self.module}")
        if self.continues:
            sessions, left = module.read_sessions(path, state)
            return list(sessions), bytes(left)
        found = module.session_files(path) if hasattr(module, "session_files") else [module.session_file(path)]
        return [one for one in found if one.calls or one.damaged or one.notes], b""


BILL_READERS = {
    "claude-code": BillReader("claude_code.transcript", continues=True),
    "codex": BillReader("codex.bill"),
    "gemini-cli": BillReader("gemini_cli.bill"),
    "qwen-code": BillReader("qwen_code.bill"),
    "opencode": BillReader("opencode.bill", is_whole=False),
    "cline": BillReader("cline.bill", is_whole=False),
    "crush": BillReader("crush.bill", is_whole=False),
}
"""The formats whose bills are read without content; every other format is read call by call."""
