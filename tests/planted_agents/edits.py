"""An edit of an example agent's folder, and a copy of that folder with edits."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
AGENTS = ROOT / "docs" / "examples" / "agents"
LONGER = "\n## Before you answer\n\n" + "".join(
    f"- If the question is about {what}, read the file of that name again, even if you have read it before.\n"
    for what in ("loans", "fees", "rooms", "readings", "newspapers", "maps", "school classes", "lost titles")
)
DESCRIPTION = "Look up whether a title is on the shelf, on loan or reserved, and on which floor it stands."


@dataclass(frozen=True, slots=True)
class Edit:
    """`old`, which `file` has exactly once, becomes `new`; without `old`, `new` is added at the end."""

    file: str
    old: str
    new: str

    def apply(self, folder: Path) -> None:
        place = folder / self.file
        text = place.read_text(encoding="utf-8") if place.exists() else ""
        assert not self.old or text.count(self.old) == 1, f"{self.file} has {self.old!r} {text.count(self.old)} times"
        place.write_text(text.replace(self.old, self.new) if self.old else text + self.new, encoding="utf-8")


Edits = tuple[Edit, ...]
PROMPT_READ = 'Path(__file__).with_name("prompt.md").read_text(encoding="utf-8")'
LONGER_PROMPT = (Edit("prompt.md", "", LONGER),)
ANOTHER_MODEL = "claude-opus-5-5"
PYTHON_MODEL = (Edit("agent.py", '"claude-sonnet-5-5"', f'"{ANOTHER_MODEL}"'),)


def project(agent: str, target: Path, *edits: Edit) -> Path:
    """A copy of an agent's folder, edited."""
    shutil.copytree(AGENTS / agent, target, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    for edit in edits:
        edit.apply(target)
    return target
