"""The simulated APIs as one ASGI application: addresses, responses with their pace and injected faults, and serving."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from cachecost.live.clock import ignore
from cachecost.live.keys import query_secrets, redact_text
from cachecost.live.loopback import ENCODING, LoopbackHosts, QuietServer, address_of, client_left, listen
from cachecost.live.server.answering import answer_call, count_call, count_tokens
from cachecost.live.server.gemini_api import COUNT, KEY_HEADER, STREAM, WHOLE, GeminiApi
from cachecost.live.server.model import ApiError, find_model, listed_models, not_found, of_status, page_of
from cachecost.live.server.openai_api import CHAT, RESPONSES
from cachecost.live.server.served_api import (
    MESSAGES,
    VERSION,
    ReceivedCall,
    ServedApi,
    ServedResponse,
    encode_json,
    keys_in,
    receive_call,
)
from cachecost.live.server.state import GARBAGE, AnswerDelays, ConnectionCut, ServerState

JSON = "application/json"


class PacedResponse:
    """An answer with its delays. A cut is raised as ConnectionCut once half of it is sent."""

    def __init__(self, answered: ServedResponse, pauses: AnswerDelays) -> None:
        self._answered, self._pauses = answered, pauses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answered, api = self._answered, self._answered.api
        kind = answered.fault.kind if answered.fault else ""
        if kind == "timeout":
            await self._pauses.until(client_left(receive))
            await _start(send, 200, {"content-type": JSON})  # nobody listens, or the server stops: no proper end
            raise ConnectionCut("nothing was answered")
        if answered.streams:
            chunks = [GARBAGE] if kind == "garbage" else list(api.events(answered))
            await self._pauses.sleep(answered.first_token_s)
            names = {"content-type": api.stream_type, "cache-control": "no-cache", "request-id": answered.request_id}
            await _start(send, 200, names)
            between = max(0.0, answered.seconds - answered.first_token_s) / len(chunks)
            for chunk in chunks[: len(chunks) // 2] if kind == "cut" else chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                await asyncio.sleep(0)  # a client that has left is noticed, or asyncio warns of every further write
                await self._pauses.sleep(between)
            if kind == "cut":
                raise ConnectionCut("the stream was cut in the middle")
            await send({"type": "http.response.body", "body": b""})
            return
        refused = answered.message if isinstance(answered.message, ApiError) else None
        body = encode_json(api.error(refused, answered.request_id) if refused else api.whole(answered))
        await self._pauses.sleep(answered.seconds)
        sent = GARBAGE if kind == "garbage" else body
        headers = {"content-type": JSON, "content-length": str(len(sent)), "request-id": answered.request_id}
        await _start(send, api.status(refused) if refused else 200, {**headers, **(refused.headers if refused else {})})
        if kind == "cut":
            await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
            raise ConnectionCut("the answer was cut in the middle")
        await send({"type": "http.response.body", "body": sent})


class JsonResponse:
    def __init__(self, body: Mapping[str, Any], request_id: str, status: int = 200, headers: Any = None) -> None:
        self._body, self._status = encode_json(body), status
        head = {"content-type": JSON, "content-length": str(len(self._body)), "request-id": request_id}
        self._headers = {**head, **(headers or {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _start(send, self._status, self._headers)
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else self._body})


def error_response(api: ServedApi, refused: ApiError, request_id: str) -> JsonResponse:
    return JsonResponse(api.error(refused, request_id), request_id, api.status(refused), refused.headers)


async def _start(send: Send, status: int, headers: Mapping[str, str]) -> None:
    raw = [(name.encode(ENCODING), value.encode(ENCODING, "replace")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})


class _Server(QuietServer):
    """Ends waits when it stops, so that answers complete; `stop` ends others. Only for names of this machine."""

    def __init__(
        self, app: ASGIApp, pauses: AnswerDelays | None, ready: Callable[[], None], stop: Callable[[], None] = ignore
    ) -> None:
        super().__init__(LoopbackHosts(app), ready)
        self._pauses, self._stop = pauses, stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stop()
        if self._pauses is not None:
            self._pauses.stop()
        await super().shutdown(sockets)


def serve_until_stopped(
    app: ASGIApp, listener: socket.socket, pauses: AnswerDelays, ready: Callable[[], None], stop: Callable[[], None]
) -> None:
    """Serve until Ctrl-C or SIGTERM. Answers complete unless a second Ctrl-C comes; `stop` ends the endless ones."""
    asyncio.run(_Server(app, pauses, ready, stop).serve(sockets=[listener]))


@contextlib.contextmanager
def serving(app: ASGIApp, pauses: AnswerDelays | None = None) -> Iterator[str]:
    """Serve from a thread while the block runs; yields the address."""
    with listen(0) as listener, serving_at(app, listener, pauses):
        yield address_of(listener)


@contextlib.contextmanager
def serving_at(app: ASGIApp, listener: socket.socket, pauses: AnswerDelays | None = None) -> Iterator[None]:
    """Serve a socket from a thread while the block runs."""
    began = threading.Event()
    server = _Server(app, pauses, began.set)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
    thread.start()
    try:
        began.wait()
        yield
    finally:
        server.stop()
        thread.join()


GEMINI = GeminiApi("")
GEMINI_VERSIONS = ("v1beta", "v1alpha")
"""Versions whose addresses no other API has; `v1/models` is one that all three have."""
Handler = Callable[[Request], Awaitable[ASGIApp]]


def app_of(served: ServerState, more: Sequence[BaseRoute] = ()) -> Starlette:
    """The simulated APIs; `more` are further routes, like the bill's."""
    ends = Endpoints(served)
    route = ends.route
    routes = [
        route("/v1/messages", partial(ends.answer, MESSAGES)),
        route("/v1/messages/count_tokens", ends.count_tokens),
        route("/v1/models", ends.models, "GET"),
        route("/v1/models/{id:path}", ends.model, "GET"),
        route("/v1/chat/completions", partial(ends.answer, CHAT), api=CHAT),
        route("/v1/responses", partial(ends.answer, RESPONSES), api=RESPONSES),
        route("/v1/responses/input_tokens", ends.input_tokens, api=RESPONSES),
        *(route(f"/{version}/models/{{called:path}}", ends.gemini, api=GEMINI) for version in (*GEMINI_VERSIONS, "v1")),
        *(route(f"/{version}/models", ends.models, "GET", GEMINI) for version in GEMINI_VERSIONS),
        *(route(f"/{version}/models/{{id:path}}", ends.model, "GET", GEMINI) for version in GEMINI_VERSIONS),
        route("/", ends.hello, "GET"),
        *more,
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: ends.not_here})
    app.router.redirect_slashes = False
    return app


class Endpoints:
    def __init__(self, served: ServerState) -> None:
        self.served = served

    def route(self, path: str, handler: Handler, method: str = "POST", api: ServedApi = MESSAGES) -> Route:
        """The route of a handler. Exceptions become the API's status 500 and a diagnostic."""

        async def endpoint(request: Request) -> ASGIApp:
            try:
                return await handler(request)
            except ClientDisconnect:
                return Response(status_code=499)
            except Exception as error:
                secrets = [*keys_in(request.headers), *query_secrets(request.url.query)]
                clean = redact_text("".join(traceback.format_exception_only(error)).strip(), secrets)
                self.served.say(f"internal error at {request.method} {request.url.path}: {clean}")
                return error_response(api, of_status(500), self._request_id(request))

        guarded: Any = endpoint
        return Route(path, guarded, methods=[method])

    async def count_tokens(self, request: Request) -> ASGIApp:
        came = await self._receive(MESSAGES, request)
        return self._respond(request, came if isinstance(came, ApiError) else count_tokens(self.served, came))

    async def input_tokens(self, request: Request) -> ASGIApp:
        shape = {"object": "response.input_tokens"}
        return await self._count(RESPONSES, request, lambda count: {**shape, "input_tokens": count})

    async def gemini(self, request: Request) -> ASGIApp:
        """`MODEL:METHOD`."""
        model, _, method = str(request.path_params["called"]).rpartition(":")
        api = GeminiApi(model, method == STREAM, request.query_params.get("alt") == "sse")
        if method == COUNT:
            return await self._count(api, request, lambda count: {"totalTokens": count})
        if method in (WHOLE, STREAM):
            return await self.answer(api, request)
        return self._respond(request, not_found(f"Method {method} is not simulated"), api)

    async def models(self, request: Request) -> ASGIApp:
        api = _api_asked(request)
        if fault := _models_fault(api, request):
            return self._respond(request, fault, api)
        if api is MESSAGES:
            query = request.query_params
            lifecycles = [*query.getlist("lifecycle"), *query.getlist("lifecycle[]")]
            return self._respond(request, page_of(self.served.models, query, lifecycles))
        models = [dict(api.model_object(one)) for one in listed_models(self.served.meters.models(api.maker))]
        return self._respond(request, api.model_list(models), api)

    async def model(self, request: Request) -> ASGIApp:
        api = _api_asked(request)
        known = self.served.models if api is MESSAGES else self.served.meters.models(api.maker)
        found = _models_fault(api, request) or find_model(known, request.path_params["id"])
        return self._respond(request, found if isinstance(found, ApiError) else api.model_object(found), api)

    async def hello(self, request: Request) -> ASGIApp:
        return self._respond(request, {"message": "cachecost serve: simulated APIs. What your calls cost: /cachecost"})

    async def not_here(self, request: Request, error: Exception) -> Any:
        assert isinstance(error, HTTPException)
        method = of_status(405, "Method Not Allowed", error.headers)
        return self._respond(request, method if error.status_code == 405 else not_found("Not Found"))

    async def _receive(self, api: ServedApi, request: Request) -> ReceivedCall | ApiError:
        headers = api.headers(request.headers, request.query_params)
        return await receive_call(api, headers, request.stream(), request.url.query)

    async def answer(self, api: ServedApi, request: Request) -> ASGIApp:
        came = await self._receive(api, request)
        if isinstance(came, ApiError):
            return self._respond(request, came, api)
        return PacedResponse(answer_call(self.served, api, came), self.served.pauses)

    async def _count(self, api: ServedApi, request: Request, form: Callable[[int], Mapping[str, Any]]) -> ASGIApp:
        came = await self._receive(api, request)
        count = came if isinstance(came, ApiError) else count_call(self.served, api, came)
        return self._respond(request, count if isinstance(count, ApiError) else form(count), api)

    def _respond(
        self, request: Request, value: Mapping[str, Any] | ApiError, api: ServedApi = MESSAGES
    ) -> JsonResponse:
        name = self._request_id(request)
        return error_response(api, value, name) if isinstance(value, ApiError) else JsonResponse(value, name)

    def _request_id(self, request: Request) -> str:
        return "req_" + self.served.ids.next(request.method.encode(), request.url.path.encode())


def _api_asked(request: Request) -> ServedApi:
    """Whose client asks for models: `/v1/models` is an address of all three APIs."""
    headers = request.headers
    if not request.url.path.startswith("/v1/") or KEY_HEADER in headers or "key" in request.query_params:
        return GEMINI
    is_openai = "authorization" in headers and "x-api-key" not in headers and VERSION not in headers
    return CHAT if is_openai else MESSAGES


def _models_fault(api: ServedApi, request: Request) -> ApiError | None:
    """Why the headers are refused; those of OpenAI's clients are known by their key."""
    return None if api is CHAT else api.header_fault(api.headers(request.headers, request.query_params))
