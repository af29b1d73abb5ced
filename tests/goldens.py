"""Golden files: what a test compares a text with, and the check that none is left over.

A test that asks for the fixture `golden` has one file, named after it: `tests/views/test_x.py::test_y[80]`
has `tests/views/goldens/test_x/test_y-80.txt`. `pytest --update-goldens` writes the files anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import unified_diff
from pathlib import Path

FOLDER = "goldens"


class Golden:
    """The golden file of one test."""

    def __init__(self, path: Path, update: bool) -> None:
        self.path = path
        self.update = update

    def check(self, text: str) -> None:
        """Fail with a diff unless `text` is what the file says; under --update-goldens, write it."""
        if self.update:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(text, encoding="utf-8", newline="\n")
        assert self.path.is_file(), f"{self.path}: no golden file; make it with: pytest --update-goldens"
        said = self.path.read_bytes().decode("utf-8")
        diff = unified_diff(said.splitlines(), text.splitlines(), "golden", "got", lineterm="")
        assert said == text, "\n".join([f"{self.path}: differs (accept it with: pytest --update-goldens)", *diff])


def golden_path(module: Path, test: str) -> Path:
    """Where the golden file of the test named `test` (parameters in brackets) of `module` is."""
    name = re.sub(r"[^\w.-]+", "-", test).strip("-")
    return module.parent / FOLDER / module.stem / f"{name}.txt"


def orphans(root: Path, modules: Iterable[Path], used: Iterable[Path]) -> list[Path]:
    """Golden files under `root` that no test has: of `modules` (collected whole) or of a module that is gone."""
    whole, wanted = set(modules), set(used)
    return [path for path in sorted(root.rglob(f"{FOLDER}/*/*")) if path not in wanted and _is_judged(path, whole)]


def _is_judged(path: Path, whole: set[Path]) -> bool:
    module = path.parent.parent.parent / f"{path.parent.name}.py"
    return module in whole or not module.exists()
