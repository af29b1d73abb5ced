"""The bill so far as JSON at `/cachecost.json`, and the way to the page of the calls, which begins at `/cachecost`.

The page is for people, below an address that holds a token; the API stays where clients find it. `/cachecost` leads a
browser there that was sent by a person, not by another site, and under no name that another site controls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.ledger.rows import REFUSED
from cachecost.live.loopback import HEADERS, names_loopback
from cachecost.live.server.bill import bill_json, bill_of
from cachecost.live.server.meter import Meter

REFUSED_STATUS, UNKNOWN_STATUS = 400, 404
NAME = "cachecost serve"


@dataclass(frozen=True, slots=True)
class MeterFeed:
    """The calls of a meter, each with its simulated usage as its bill."""

    meter: Meter

    def since(self, count: int) -> Sequence[Call]:
        """The calls after the first `count`."""
        recorded = []
        for one in self.meter.taken[count:]:
            if one.row.error is None:
                recorded.append(replace(one.call, billed=one.row.usage, is_simulated=False))
            else:
                status = REFUSED_STATUS if one.row.error_type == REFUSED else UNKNOWN_STATUS
                recorded.append(replace(one.call, status=status, is_simulated=False))
        return recorded


PAGE, JSON = "/cachecost", "/cachecost.json"
BELOW = f"{PAGE}/"
BILL_FROM_PAGE = "../../cachecost.json"
"""The bill's address from the page."""


def routes(meter: Meter, token: str, port: int) -> list[Route]:
    """The bill, and the way to the page on this port."""

    async def figures(request: Request) -> Response:
        return JSONResponse(bill_json(bill_of(meter)), headers={"cache-control": "no-store"})

    async def page(request: Request) -> Response:
        if not names_loopback(request.scope, port):
            return Response(status_code=421, headers=HEADERS)
        # values of Sec-Fetch-Site of requests that a person began, or that no browser sent
        if request.headers.get("sec-fetch-site") not in (None, "none", "same-origin"):
            return Response(status_code=403, headers=HEADERS)
        return RedirectResponse(f"{BELOW}{token}/", headers=HEADERS)

    return [Route(PAGE, page), Route(JSON, figures)]


@dataclass(frozen=True, slots=True)
class PageBesideApi:
    """Requests below `/cachecost/` go to the page, all others to the API."""

    api: ASGIApp
    page: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_page = scope["type"] == "http" and scope["path"].startswith(BELOW)
        await (self.page if is_page else self.api)(scope, receive, send)
