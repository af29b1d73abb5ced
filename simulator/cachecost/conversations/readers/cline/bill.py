"""The bill of a task of Cline, Roo Code or Kilo Code, or of a session of Cline's SDK, without its content."""

from __future__ import annotations

from pathlib import Path

from cachecost.base.formatting import count_text
from cachecost.conversations.input_files import SessionFile
from cachecost.conversations.readers.cline.reader import stored_calls_of
from cachecost.conversations.readers.cline.sessions import MISSING, SdkCalls
from cachecost.conversations.readers.common.json_values import billed_calls, number_calls

CLIENTS = {"rooveterinaryinc.roo-cline": "roo-code", ".vscode-mock": "roo-code", "kilocode.kilo-code": "kilo-code"}
"""The client by the folder of its extension; "cline" elsewhere."""


def session_file(path: Path) -> SessionFile:
    """The calls of a task or session. What is damaged is listed, the rest is counted.

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
    return SessionFile(str(path), client, found[0].project if found else "", billed_calls(found), damaged, notes)
