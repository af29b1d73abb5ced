"""The current bill as a page at `/cachecost`, and as JSON at `/cachecost.json`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from cachecost.live.server.bill import ServerBill, bill_of
from cachecost.live.server.bill_figures import HEADERS, bill_json, cells, class_rows, counted_by, facts, verdict
from cachecost.live.server.meter import Meter
from cachecost.views.charts.palette import CLASS_COLOURS, DARK_COLOURS, PAGE_COLOURS

if TYPE_CHECKING:
    from jinja2 import Template

REFRESH_S = 5
PAGE, JSON = "/cachecost", "/cachecost.json"
NOTHING_ELSE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""The page loads no resource and runs no script."""


def routes(meter: Meter) -> list[Route]:
    """The page and its JSON."""

    async def page(request: Request) -> Response:
        headers = {"content-security-policy": NOTHING_ELSE, "cache-control": "no-store"}
        return HTMLResponse(html(bill_of(meter)), headers=headers)

    async def figures(request: Request) -> Response:
        return JSONResponse(bill_json(bill_of(meter)), headers={"cache-control": "no-store"})

    return [Route(PAGE, page), Route(JSON, figures)]


def html(bill: ServerBill) -> str:
    """The page, self-contained: no script, no network. It reloads every few seconds."""
    groups = {"workspace": bill.workspaces, "model": bill.models, "conversation": bill.conversations}
    return _template().render(
        refresh_s=REFRESH_S,
        json_path=JSON,
        colours=PAGE_COLOURS,
        dark_colours=DARK_COLOURS,
        class_colours=CLASS_COLOURS,
        bill=bill,
        verdict=verdict(bill),
        facts=facts(bill),
        classes=class_rows(bill.total),
        headers=HEADERS,
        groups=[(name, [(share.name, cells(share)) for share in shares]) for name, shares in groups.items()],
        total=cells(bill.total),
        counted_by=counted_by(bill),
    )


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("cachecost.live.server")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template("bill.html")
