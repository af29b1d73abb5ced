"""HTML tables for notebooks: inline styles only, and the colours of the page, so that light and dark themes work."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

RULED = "border:0;border-bottom:1px solid rgba(128,128,128,.35)"
CELL = f"padding:.2em .8em .2em 0;{RULED};background:transparent;color:inherit;vertical-align:baseline"
WHOLE = "border-collapse:collapse;border:0;margin:.4em 0;color:inherit;background:transparent"
DIGITS = "font-variant-numeric:tabular-nums;white-space:nowrap"
PROSE = "margin:.3em 0;max-width:60em;color:inherit"


@dataclass(slots=True)
class HtmlTable:
    """Rows of text; the first column and those named in `prose` are left-aligned."""

    heads: tuple[str, ...]
    prose: tuple[str, ...] = ()
    rows: list[tuple[tuple[str, ...], bool]] = field(default_factory=list)

    def add(self, *cells: str, strong: bool = False) -> None:
        """Add a row, in bold if `strong`."""
        self.rows.append((cells, strong))

    def html(self) -> str:
        """The table as HTML, with every text escaped."""
        heads = "".join(self._cell("th", number, head, "font-weight:600") for number, head in enumerate(self.heads))
        body = "".join(f"<tr>{self._row(cells, strong)}</tr>" for cells, strong in self.rows)
        scroll = '<div style="overflow-x:auto">'
        return f'{scroll}<table style="{WHOLE}"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'

    def _row(self, cells: tuple[str, ...], strong: bool) -> str:
        weight = f"font-weight:{'700' if strong else '400'}"
        rendered = [self._cell("td" if number else "th", number, cell, weight) for number, cell in enumerate(cells)]
        return "".join(rendered)

    def _cell(self, tag: str, number: int, text: str, style: str) -> str:
        is_prose = number == 0 or self.heads[number] in self.prose
        side = "text-align:left" if is_prose else f"text-align:right;{DIGITS}"
        scope = ' scope="row"' if tag == "th" and style != "font-weight:600" else ""
        return f'<{tag}{scope} style="{CELL};{side};{style}">{escape(text)}</{tag}>'


def paragraph(text: str, *, strong: bool = False) -> str:
    """A sentence above or below a table, muted unless `strong`."""
    look = "font-weight:600" if strong else "opacity:.75;font-size:.92em"
    return f'<p style="{PROSE};{look}">{escape(text)}</p>'
