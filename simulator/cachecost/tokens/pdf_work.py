"""How much pypdf goes through to read the text of a PDF: a few hundred bytes may have it draw one thing without end.

A page counts with its content, the tables of its fonts, and the forms that it draws, each as often as it is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypdf import PdfReader

DRAWN = re.compile(rb"/([^\s/\[\]<>(){}%]+)\s+Do\b")
"""A form or an image that a content stream draws, by its name."""
CHARACTERS = re.compile(rb"<([0-9A-Fa-f]{1,6})>\s*<([0-9A-Fa-f]{1,6})>\s*[<\[]")
"""A range of characters in the table of a font: the first, the last, and what they are."""


def has_more_pages(reader: PdfReader, most: int) -> bool:
    """Whether a file has more pages than that. Of the page tree no more nodes are looked at than such a file has; one
    that stands at several places counts for each."""
    number = 0
    todo: list[Any] = [reader.root_object["/Pages"]]
    while todo and number <= 2 * most:
        number += 1
        kids = todo.pop().get_object().get("/Kids")
        todo += kids.get_object() if kids else ()
    return number > 2 * most or len(reader.pages) > most


def shows_more(reader: PdfReader, most: int) -> bool:
    """Whether the pages show more bytes than that. Stops where it is known."""
    drawn, left = _DrawnBytes(most), most
    for page in reader.pages:
        content = page.get_contents()
        data = b"" if content is None else content.get_data()
        left -= drawn.of(data, page.get_inherited("/Resources"))
        if left < 0:
            return True
    return False


class _DrawnBytes:
    """Bytes that are gone through for a content stream. One that draws itself counts as more than `most`."""

    def __init__(self, most: int) -> None:
        self._without_end = most + 1
        self._forms: dict[int, int] = {}

    def of(self, content: bytes, resources: Any) -> int:
        """Bytes of a content stream, of the fonts at hand, and of what it draws. An unknown name may be any form."""
        if len(content) >= self._without_end:
            return len(content)
        within = resources.get_object() if resources else {}
        forms = {name[1:].encode(): self._form(one) for name, one in _in(within, "/XObject")}
        most = max(forms.values(), default=0)
        drawn = sum(forms.get(name, most) for name in DRAWN.findall(content))
        return len(content) + sum(_table_bytes(font) for _, font in _in(within, "/Font")) + drawn

    def _form(self, form: Any) -> int:
        if form.get("/Subtype") != "/Form":
            return 0
        if id(form) not in self._forms:
            self._forms[id(form)] = self._without_end
            self._forms[id(form)] = self.of(form.get_data(), form.get("/Resources"))
        return self._forms[id(form)]


def _in(resources: Any, kind: str) -> Iterator[tuple[str, Any]]:
    """The names of a kind of resources, and what each stands for."""
    found = resources.get(kind)
    return ((name, one.get_object()) for name, one in (found.get_object() if found else {}).items())


def _table_bytes(font: Any) -> int:
    """Bytes of the table that says what a font's characters are, and one more for each of a range."""
    table = font.get("/ToUnicode")
    found: Any = table.get_object() if table else None
    data = found.get_data() if hasattr(found, "get_data") else b""
    return len(data) + sum(max(0, int(last, 16) - int(first, 16)) for first, last in CHARACTERS.findall(data))
