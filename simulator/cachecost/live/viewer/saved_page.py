"""A session as one HTML file that needs no server: the page, its style and modules, and the answers it asks for.

The modules of the page are joined to one script (rules: static/README.md).
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any

from cachecost.base.errors import CannotEvaluate, InputError
from cachecost.base.formatting import count_text
from cachecost.live.viewer.source import Answer, PageSource
from cachecost.views.viewer.sessions import inert_json

IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export ", re.MULTILINE)
LEFT_OVER = re.compile(r'^(?:import\b|\}\s*from\s+").*', re.MULTILINE)
MAIN = "app.js"


def join_modules(modules: Mapping[str, str]) -> str:
    """The module MAIN and all that it imports as one: each after those that it imports.

    Raises ValueError where they import each other, import one that is not there, or import in another form.
    """
    parts = []
    done: list[str] = []
    _visit(modules, MAIN, done, ())
    for name in done:
        text = EXPORT.sub("", IMPORT.sub("", modules[name]))
        if left := LEFT_OVER.search(text):
            raise ValueError(f'{name}: expected imports as {{ name }} from "./x.js"; got {left[0]}')
        parts.append(text)
    return "\n".join(parts).replace("</", "<\\/").replace("<!--", "<\\!--")


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


NAME = re.compile(r"[a-z0-9_-]+\.(html|css|js)")
TYPES = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
INDEX = "index.html"


def read_static_files() -> Mapping[str, bytes]:
    """The content of each file by its name; others than those of the page are left out."""
    folder = files("cachecost.live.viewer") / "static"
    found = (one for one in folder.iterdir() if NAME.fullmatch(one.name)) if folder.is_dir() else ()
    return {one.name: one.read_bytes() for one in found}


def content_type(name: str) -> str:
    """The type of a file by its suffix. Raises KeyError for one that is not served."""
    return TYPES[name.rpartition(".")[2]]


MOST_BYTES = 6 << 20
"""Of JSON in a page, besides that of the session itself and that of texts."""
MOST_TEXT_BYTES = 2 << 20
CHARSET = re.compile(r'<meta charset="utf-8" ?/?>')
STYLE = "style.css"


@dataclass(frozen=True, slots=True)
class SavedPage:
    """Makes pages of what a source answers, with the files of the page."""

    source: PageSource
    static: Mapping[str, bytes]
    most_bytes: int = MOST_BYTES
    most_text_bytes: int = MOST_TEXT_BYTES

    def of_session(self, id_: str, selected: int = 0) -> str:
        """The page of a session; it opens at the call that is selected (0: none). Raises what the source raises."""
        path, source = f"session/{id_}", self.source.current()
        session = dict(source.session(id_))
        answers: dict[str, Any] = {"start": self.source.start(), path: session}
        if session["has_blocks"]:
            with suppress(CannotEvaluate, InputError):
                answers[f"{path}/simulated"] = source.simulated(id_)
        calls = self._fitting_calls(source, session, selected)
        answers.update((f"{path}/call/{number}", call) for number, call in calls.items())
        shown = [number for number in _of_note(session, selected) if number in calls]
        texts, words = _saved_texts(source, id_, shown, self.most_text_bytes)
        answers.update((f"{path}/call/{call}/block/{n}", block) for (call, n), block in texts.items())
        total = len(session["calls"]["number"])
        kept = "all calls with their blocks"
        if len(calls) < total:
            count = f"{len(calls):,} of {count_text(total, 'call')}"
            kept = f"{count} with their blocks: the most expensive moments, then the first"
        session["facts"] = [*session["facts"], ("saved page", f"{kept}; {words}")]
        home = f"#/{path}/call/{selected}" if selected else f"#/{path}"
        return render_page(self.static, {"home": home, "answers": answers})

    def _fitting_calls(self, source: PageSource, session: Answer, selected: int) -> dict[int, Answer]:
        """Calls with their blocks, as many as there is room for: those of note, the calls before them, then all."""
        found: dict[int, Answer] = {}
        room = self.most_bytes
        noted, numbers = _of_note(session, selected), session["calls"]["number"]
        for number in dict.fromkeys([*noted, *(number - 1 for number in noted if number > 1), *numbers]):
            try:
                call = source.call(session["id"], number)
            except (CannotEvaluate, InputError):
                return found
            room -= len(inert_json(call))
            if room < 0:
                return found
            found[number] = call
        return found


def render_page(static: Mapping[str, bytes], data: Mapping[str, Any]) -> str:
    """The page as one file, with its data. Raises ValueError where the page lacks a place for a part of it."""
    texts = {name: content.decode() for name, content in static.items()}
    script = "\n" + join_modules({name: text for name, text in texts.items() if name.endswith(".js")})
    style = texts[STYLE].replace("</", "<\\/")
    embedded = inert_json(data).decode().replace("<", "\\u003c")
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    scripts = f'<script type="application/json" id="data">{embedded}</script>\n<script type="module">{script}</script>'
    parts = (
        (CHARSET, f'<meta charset="utf-8">\n<meta http-equiv="content-security-policy" content="{policy}">'),
        (re.compile(r'<link rel="stylesheet" href="static/style\.css" ?/?>'), f"<style>{style}</style>"),
        (re.compile(r'<script type="module" src="static/app\.js"></script>'), scripts),
    )
    page, made, end = texts[INDEX], "", 0
    for place, text in parts:
        match = place.search(page)
        if match is None or match.start() < end:
            raise ValueError(f"{INDEX}: expected {', '.join(one.pattern for one, _ in parts)}, in this order")
        made += page[end : match.start()] + text
        end = match.end()
    return made + page[end:]


def _digest(text: str) -> str:
    """The source expression of a content security policy for an inline script or style."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _of_note(session: Answer, selected: int) -> list[int]:
    moments = [moment["call"] for moment in session["moments"]]
    return list(dict.fromkeys([selected, *moments] if selected in session["calls"]["number"] else moments))


def _saved_texts(
    source: PageSource, id_: str, calls: Sequence[int], room: int
) -> tuple[Mapping[tuple[int, int], Answer], str]:
    """The answers for blocks, by the numbers of their call and their own, and what there is of their texts in words.

    First those that are new or changed, then the rest, as long as there is room. A text is in them once, a difference
    in its parts alone.
    """
    blocks: list[tuple[tuple[int, int], Answer]] = []
    for call in calls:
        with suppress(CannotEvaluate, InputError):
            for one in source.blocks(id_, call):
                parts = one["parts"] if one["change"] == "changed" else []
                blocks.append(((call, one["n"]), {**one, "before": None, "parts": parts}))
    found: dict[tuple[int, int], Answer] = {}
    for key, block in sorted(blocks, key=lambda pair: pair[1]["change"] == "same"):
        size = len(inert_json(block))
        if size <= room:
            room -= size
            found[key] = block
    known, saved = (sum(bool(one["text"]) for one in some) for some in ([one for _, one in blocks], found.values()))
    if not known:
        return found, "no texts of blocks"
    count = f"the {known:,}" if saved == known else f"{saved:,} of {known:,}"
    rest = "" if saved == known else ", as there is no room for more"
    return found, f"the texts of {count} blocks of the most expensive moments{rest}"
