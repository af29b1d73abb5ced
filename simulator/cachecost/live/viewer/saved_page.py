"""A session as one HTML file that needs no server: the page, its style and modules, and the answers it asks for.

Its policy allows the script and the style in it, by their digests, and nothing else. The lists of blocks are what takes
space: those of the most expensive moments come first, and the file says how many calls it has them of.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from cachecost.base.errors import CannotEvaluate, InputError
from cachecost.base.formatting import count_text
from cachecost.live.viewer.modules import join_modules
from cachecost.live.viewer.source import Answer, PageSource
from cachecost.live.viewer.static_files import INDEX
from cachecost.views.viewer.inert_json import inert_json

MOST_BYTES = 6 << 20
"""Of JSON in a page, besides that of the session itself."""
CHARSET = re.compile(r'<meta charset="utf-8" ?/?>')
STYLE_LINK = re.compile(r'<link rel="stylesheet" href="static/style\.css" ?/?>')
SCRIPT_LINK = re.compile(r'<script type="module" src="static/app\.js"></script>')
STYLE = "style.css"


@dataclass(frozen=True, slots=True)
class SavedPage:
    """Makes pages of what a source answers, with the files of the page."""

    source: PageSource
    static: Mapping[str, bytes]
    most_bytes: int = MOST_BYTES

    def of_session(self, id_: str) -> str:
        """The page of a session, which begins with it. Raises what the source raises."""
        path = f"session/{id_}"
        session = dict(self.source.session(id_))
        answers: dict[str, Any] = {"start": self.source.start(), path: session}
        if session["has_blocks"]:
            answers |= self._simulated(id_, path)
        calls = self._calls(id_, session)
        answers.update((f"{path}/call/{number}", call) for number, call in calls.items())
        session["facts"] = [*session["facts"], ("saved page", _saved_words(len(calls), session))]
        return self._page({"home": f"#/{path}", "answers": answers})

    def _simulated(self, id_: str, path: str) -> dict[str, Answer]:
        try:
            return {f"{path}/simulated": self.source.simulated(id_)}
        except (CannotEvaluate, InputError):
            return {}

    def _calls(self, id_: str, session: Answer) -> dict[int, Answer]:
        """Calls with their blocks, as many as there is room for."""
        found: dict[int, Answer] = {}
        room = self.most_bytes
        for number in _by_interest(session):
            try:
                call = self.source.call(id_, number)
            except (CannotEvaluate, InputError):
                return found
            room -= len(inert_json(call))
            if room < 0:
                return found
            found[number] = call
        return found

    def _page(self, data: Mapping[str, Any]) -> str:
        texts = {name: content.decode() for name, content in self.static.items()}
        script = "\n" + join_modules({name: text for name, text in texts.items() if name.endswith(".js")})
        style = texts[STYLE].replace("</", "<\\/")
        embedded = inert_json(data).decode().replace("<", "\\u003c")
        policy = (
            f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
            "base-uri 'none'; form-action 'none'"
        )
        return _with_parts(
            texts[INDEX],
            (CHARSET, f'<meta charset="utf-8">\n<meta http-equiv="content-security-policy" content="{policy}">'),
            (STYLE_LINK, f"<style>{style}</style>"),
            (SCRIPT_LINK, f'<script type="application/json" id="data">{embedded}</script>\n{_module(script)}'),
        )


def _module(script: str) -> str:
    return f'<script type="module">{script}</script>'


def _with_parts(page: str, *parts: tuple[re.Pattern[str], str]) -> str:
    """The page with each part in its place. Raises ValueError where a place is missing."""
    places = [(place.search(page), text) for place, text in parts]
    made, end = "", 0
    for match, text in places:
        if match is None or match.start() < end:
            raise ValueError(f"{INDEX}: expected {', '.join(place.pattern for place, _ in parts)}, in this order")
        made += page[end : match.start()] + text
        end = match.end()
    return made + page[end:]


def _digest(text: str) -> str:
    """The source expression of a content security policy for an inline script or style."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _by_interest(session: Answer) -> Iterator[int]:
    """The numbers of calls: the most expensive moments, the calls before them, then all in order of time."""
    moments = [moment["call"] for moment in session["moments"]]
    numbers = session["calls"]["number"]
    yield from dict.fromkeys([*moments, *(number - 1 for number in moments if number > 1), *numbers])


def _saved_words(calls: int, session: Answer) -> str:
    total = len(session["calls"]["number"])
    if calls == total:
        return "all calls with their blocks, each with the beginning of its text"
    return f"{calls:,} of {count_text(total, 'call')} with their blocks: the most expensive moments, then the first"
