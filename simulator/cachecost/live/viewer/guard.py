"""What a page on this machine lets in: its own token, host and origin; and the headers of every answer.

Other pages in the same browser can send requests to loopback, and a name that they control may lead there (DNS
rebinding). Without the token they find nothing, and with another Host or Origin they get nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from secrets import compare_digest

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cachecost.live.loopback import NAMES, header_values, names_loopback

METHODS = ("GET", "HEAD")
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
OWN_HEADERS = [(name.encode(), text.encode()) for name, text in HEADERS.items()]


class LoopbackGuard:
    """Passes a request on where it may; every answer gets the headers. Paths begin with `start`, which holds the token;
    `port` is the one that is listened on.
    """

    def __init__(self, app: ASGIApp, start: str, port: int) -> None:
        self._app = app
        self._start = start.encode()
        self._port = port
        self._origins = {f"http://{name}:{port}" for name in NAMES}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path = scope["path"].encode("utf-8", "surrogateescape")
        if not names_loopback(scope, self._port):
            status = 421
        elif any(origin not in self._origins for origin in header_values(scope, b"origin")):
            status = 403
        elif not compare_digest(path[: len(self._start)], self._start):
            status = 404
        elif scope["method"] not in METHODS:
            status = 405
        else:

            async def send_with_headers(message: Message) -> None:
                if message["type"] == "http.response.start":
                    own = {name for name, _ in OWN_HEADERS}
                    rest = [(name, value) for name, value in message.get("headers", []) if name not in own]
                    message = {**message, "headers": [*rest, *OWN_HEADERS]}
                await send(message)

            await self._app(scope, receive, send_with_headers)
            return
        more = [(b"allow", ", ".join(METHODS).encode())] if status == 405 else []
        headers = [*OWN_HEADERS, *more, (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
