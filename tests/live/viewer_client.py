"""Asks the page's application without a socket: any header, any method, any path."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp

from cachecost.live.viewer.app import viewer_app
from cachecost.live.viewer.source import PageSource, WorkLimit

TOKEN, PORT = "t0ken-of_the-test", 4711
HOST = f"127.0.0.1:{PORT}"
STATIC = {
    "index.html": b'<!doctype html>\n<html>\n<head>\n<meta charset="utf-8">\n'
    b'<link rel="stylesheet" href="static/style.css">\n'
    b'<script type="module" src="static/app.js"></script>\n</head><body></body></html>\n',
    "style.css": b"body { margin: 0; }\n",
    "app.js": b'import { shown } from "./text.js";\n\nshown("</script>");\n',
    "text.js": b"export function shown(text) {\n  return text;\n}\n",
}


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """A browser, as far as the application can tell. `said` are the internal errors that it reports."""

    source: PageSource
    static: Mapping[str, bytes] = field(default_factory=lambda: STATIC)
    said: list[str] = field(default_factory=list)
    limits: Callable[[], WorkLimit] = lambda: WorkLimit(None)
    messages: Sequence[Mapping[str, Any]] = ()
    """What comes after the request."""

    @property
    def app(self) -> ASGIApp:
        return viewer_app(self.source, self.static, TOKEN, PORT, self.said.append, limits=self.limits)

    def get(self, path: str, **headers: str) -> Answer:
        """GET below the token."""
        return self.ask(f"/{TOKEN}/{path}", **headers)

    def ask(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """Any request; a header named `host` replaces the right one, and `__` in a name is a hyphen."""
        sent = {"host": HOST, **{name.replace("__", "-"): value for name, value in headers.items()}}
        return asyncio.run(self._ask(path, method, sent))

    async def _ask(self, path: str, method: str, headers: Mapping[str, str]) -> Answer:
        plain, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": unquote(plain),
            "raw_path": plain.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers.items() if value],
            "http_version": "1.1",
            "scheme": "http",
            "server": ("127.0.0.1", PORT),
            "client": ("127.0.0.1", 1),
            "root_path": "",
        }
        told: list[Any] = []

        coming = iter([{"type": "http.request", "body": b"", "more_body": False}, *self.messages])

        async def receive() -> Any:
            return next(coming, None) or await asyncio.Future()

        async def send(message: Any) -> None:
            told.append(message)

        await self.app(scope, receive, send)
        head = {name.decode(): value.decode() for name, value in told[0]["headers"]}
        return Answer(told[0]["status"], head, b"".join(one.get("body", b"") for one in told[1:]))
