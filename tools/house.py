"""`python -m tools.house [FOLDER]`: the size of the package, room by room, beside that of the last release.

Tokens are Python's own, without layout and comments (f-strings count as Python 3.12 and later split them). A function
is used once if its name occurs once in its module apart from its definition, and no other module imports it.
`tests/test_rooms.py` holds the limits.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "simulator" / "cachecost"
COUNTED = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}


class HouseSize(NamedTuple):
    """Counts of one room or of all: `used_once` are private functions with one call site."""

    files: int
    lines: int
    tokens: int
    functions: int
    used_once: int

    def plus(self, other: HouseSize) -> HouseSize:
        return HouseSize(*map(sum, zip(self, other, strict=True)))


LAST_RELEASE = HouseSize(997, 108_643, 787_952, 8_215, 2_838)
"""As measured on 2026-11-27, before modules were merged by subject."""


def measure_text(text: str, imported: set[str]) -> HouseSize:
    """The size of one module; `imported` are the names that other modules import. Raises SyntaxError."""
    tree = ast.parse(text)
    tokens = sum(token.type in COUNTED for token in tokenize.generate_tokens(io.StringIO(text).readline))
    names = function_names(tree)
    return HouseSize(1, len(text.splitlines()), tokens, len(names), len(used_once(tree, imported)))


def function_names(tree: ast.Module) -> list[str]:
    """The names of all functions of a module."""
    return [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def used_once(tree: ast.Module, imported: set[str]) -> list[str]:
    """The private functions of a module with one call site; `imported` are the names that other modules import."""
    names = Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
    )
    private = [name for name in function_names(tree) if name.startswith("_") and not name.startswith("__")]
    return [name for name in private if names[name] == 1 and name not in imported]


def imported_names(trees: Iterable[ast.Module]) -> set[str]:
    """The names that modules import from others."""
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {alias.name for node in nodes for alias in node.names}


def measure_rooms(package: Path = PACKAGE) -> dict[str, HouseSize]:
    """The size of each folder directly in the package; "" are the files beside them."""
    texts = {path: path.read_text() for path in sorted(package.rglob("*.py"))}
    imported = imported_names(map(ast.parse, texts.values()))
    rooms: dict[str, HouseSize] = {}
    for path, text in texts.items():
        room = path.relative_to(package).parts[0] if path.parent != package else ""
        rooms[room] = rooms.get(room, HouseSize(0, 0, 0, 0, 0)).plus(measure_text(text, imported))
    return rooms


def render_sizes(rooms: dict[str, HouseSize]) -> str:
    """A row a room, the sum, and the last release."""
    rows = [(room or "(top)", size) for room, size in sorted(rooms.items())]
    total = HouseSize(*map(sum, zip(*rooms.values(), strict=True)))
    lines = [f"{'room':<16}{'files':>7}{'lines':>9}{'tokens':>9}{'functions':>11}{'used once':>11}\n"]
    for name, size in [*rows, ("all", total), ("last release", LAST_RELEASE)]:
        counts = f"{size.files:>7,}{size.lines:>9,}{size.tokens:>9,}{size.functions:>11,}"
        lines.append(f"{name:<16}{counts}{size.used_once / max(size.functions, 1):>11.0%}\n")
    return "".join(lines)


if __name__ == "__main__":
    sys.stdout.write(render_sizes(measure_rooms(Path(sys.argv[1]) if sys.argv[1:] else PACKAGE)))
