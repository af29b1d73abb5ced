"""The modules of the page as one script, for a page without a server (rules: static/README.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping

IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export ", re.MULTILINE)
LEFT_OVER = re.compile(r'^(?:import\b|\}\s*from\s+").*', re.MULTILINE)
MAIN = "app.js"


def join_modules(modules: Mapping[str, str], main: str = MAIN) -> str:
    """The module `main` and all that it imports as one: each after those that it imports.

    Raises ValueError where they import each other, import one that is not there, or import in another form.
    """
    parts = []
    for name in _in_order(modules, main):
        text = EXPORT.sub("", IMPORT.sub("", modules[name]))
        if left := LEFT_OVER.search(text):
            raise ValueError(f'{name}: expected imports as {{ name }} from "./x.js"; got {left[0]}')
        parts.append(text)
    return "\n".join(parts).replace("</", "<\\/").replace("<!--", "<\\!--")


def _in_order(modules: Mapping[str, str], main: str) -> list[str]:
    done: list[str] = []
    _visit(modules, main, done, ())
    return done


def _visit(modules: Mapping[str, str], name: str, done: list[str], above: tuple[str, ...]) -> None:
    if name in above:
        raise ValueError(f"modules import each other: {' → '.join([*above, name])}")
    if name not in modules:
        raise ValueError(f"{above[-1] if above else 'the page'} imports {name}, which is not there")
    if name in done:
        return
    for imported in IMPORT.findall(modules[name]):
        _visit(modules, imported, done, (*above, name))
    done.append(name)
