"""A page as a reader finds it: ids, links, headings, figures, tables, and what it would load."""

from __future__ import annotations

import subprocess
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path

from browser import browser
from tools.pages import FLAGS

STARTED = (*FLAGS, "--headless", "--enable-logging=stderr", "--hide-scrollbars")

LINKS = ("href", "src", "xlink:href", "srcset", "action", "data", "poster")
PROBE = """
<iframe id="frame" style="width:{width}px;height:900px;border:0" srcdoc="{page}"></iframe>
<pre id="told"></pre>
<script>
document.getElementById("frame").addEventListener("load", (event) => {{
  const view = event.target.contentWindow, root = view.document.documentElement;
  document.getElementById("told").textContent = JSON.stringify(({probe})(view, root));
}});
</script>
"""


class Page(HTMLParser):
    """A parsed page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.headings: list[int] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.figures: dict[str, str] = {}
        self.strategies: dict[str, dict[str, str]] = {}
        self.titles: list[str] = []
        self._row = ""
        self._key = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.tags.append((tag, named))
        self.ids += [str(named["id"])] if "id" in named else []
        self.links += [str(named[name]) for name in LINKS if named.get(name)]
        if tag in ("h1", "h2", "h3", "h4"):
            self.headings.append(int(tag[1]))
        if "data-strategy" in named:
            self._row = str(named["data-strategy"])
            self.strategies[self._row] = {}
        if tag == "span" and named.get("class") == "number":
            return
        self._key = str(named.get("data-figure") or named.get("data-key") or ("title" if tag == "title" else ""))

    def handle_data(self, data: str) -> None:
        if self._key == "title":
            self.titles.append(data)
        elif self._key in ("answer", "saving"):
            self.figures[self._key] = self.figures.get(self._key, "") + data.replace("\u00a0", " ")
        elif self._key:
            row = self.strategies[self._row]
            row[self._key] = row.get(self._key, "") + data.replace("\u00a0", " ")

    def handle_endtag(self, tag: str) -> None:
        if tag != "span":
            self._key = ""

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [named for name, named in self.tags if name == tag]


def opened(path: Path, *flags: str) -> tuple[str, str]:
    """What the browser prints, and what it logs."""
    command = [browser(), *STARTED, f"--user-data-dir={path.parent}/profile", *flags, path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout, done.stderr


def probed(text: str, folder: Path, probe: str, width: int = 390, *flags: str) -> str:
    """What the function `probe` of (window, root element) gives as JSON in a page `width` pixels wide."""
    around = folder / "around.html"
    around.write_text(PROBE.format(page=escape(text), probe=probe, width=width), encoding="utf-8")
    dom, logged = opened(around, "--dump-dom", *flags)
    assert "CONSOLE" not in logged, logged
    return unescape(dom.split('<pre id="told">')[1].split("</pre>")[0])
