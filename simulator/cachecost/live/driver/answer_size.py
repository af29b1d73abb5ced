"""An HTTP client that reads answers up to a limit: an upstream may send without end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2

MOST_BYTES = 64 << 20
"""Of the body of one answer, as sent."""


class BoundedClient(httpx2.AsyncClient):
    """Gives up an answer of more than MOST_BYTES with httpx2.ReadError. A transport of its own would do so, too, but
    without the proxies of the environment.
    """

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        response = await super().send(request, stream=True, **options)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _BoundedStream(response.stream)
        if not stream:
            try:
                await response.aread()
            except BaseException:
                await response.aclose()
                raise
        return response


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MOST_BYTES:
                raise httpx2.ReadError(f"the answer has more than {MOST_BYTES:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
