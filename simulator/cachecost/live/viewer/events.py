"""What happens while a page is open, as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from time import monotonic

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from cachecost.live.viewer.source import LiveEvents
from cachecost.live.viewer.threads import run_in_thread
from cachecost.views.viewer.inert_json import inert_json

EVENT_STREAM = "text/event-stream"
COMMENT_S = 15.0
"""How often something is sent when nothing happens, so that both sides know that the other is there."""
PAUSE_S = 0.25
"""Between two looks at what is new; calls that come faster are told together."""
SHARE = 5
"""A look that takes long is followed by a pause so many times as long."""


def event_response(live: LiveEvents, request: Request) -> Response:
    """The stream of a page, until either side ends it."""
    if request.method == "HEAD":
        return Response(media_type=EVENT_STREAM)
    return StreamingResponse(event_stream(live), media_type=EVENT_STREAM)


async def event_stream(live: LiveEvents) -> AsyncIterator[bytes]:
    """The events, and a comment where there is none for long."""
    with live.signal.waiter() as waiter:
        seen = await run_in_thread(live.seen)
        yield b": cachecost\n\n"
        while not live.signal.has_stopped:
            if not await waiter.changed(COMMENT_S):
                yield b": nothing new\n\n"
                continue
            began = monotonic()
            for name, data in await run_in_thread(lambda: live.changes(seen)):
                yield b"event: %b\ndata: %b\n\n" % (name.encode(), inert_json(data))
            await waiter.pause(max(PAUSE_S, SHARE * (monotonic() - began)))
