"""What the server's parts share: a client's call, its answer and charge, the API's errors, checks of bodies, models.

Conversations that the server keeps (`thread`, `previous_response_id`) are completed here: the client sends only what is
new. The meter checks the closed list of rule 6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol

from cachecost.ledger.rows import CallRow
from cachecost.prompts.intake import Intake
from cachecost.prompts.request import BREAKPOINT, THREAD_NOT_FOUND, MessageThread, NotAMessage, sent_breakpoints
from cachecost.providers.listing import model_rows
from cachecost.providers.rules import RuleBook, data_date
from cachecost.providers.usage import Usage


@dataclass(frozen=True, slots=True)
class ClientCall:
    """One call as a client sent it.

    `turn` is the number of assistant messages in the body, the same for a retry. `start` is seconds since the epoch by
    the server's clock. `retry` is the header `x-stainless-retry-count`. `previous` is the message id that the body's
    `diagnostics` name (None: none). `thread` is the message thread in which it was sent. `host` is whose cache and
    prices count (None: that of the meter's setup).
    """

    id: str
    body: Mapping[str, Any]
    workspace: str
    start: float
    turn: int = 0
    retry: int = 0
    wants_diagnostics: bool = False
    previous: str | None = None
    thread: MessageThread | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """An answer: wire blocks, and simulated seconds until the first token and until the end."""

    content: Sequence[Mapping[str, Any]]
    stop_reason: str = "end_turn"
    first_token_s: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ApiError:
    """An error of the API: an HTTP status, an error type and the API's message."""

    status: int
    type: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallCharge:
    """The ledger row and usage of a call. `diagnostics` is None if not requested, or if nothing differs.

    `thinking_tokens` are those of the output that are thinking.
    """

    row: CallRow
    usage: Usage
    diagnostics: Mapping[str, Any] | None = None
    thinking_tokens: int = 0


class Answerer(Protocol):
    """Generates answers: a script, a recording or a small agent. The same call gets the same answer."""

    def answer(self, asked: ClientCall) -> ModelAnswer | ApiError: ...


INVALID = "invalid_request_error"
NOT_FOUND = "not_found_error"
MODEL = "model: "
OF_STATUS = {
    400: INVALID,
    401: "authentication_error",
    403: "permission_error",
    404: NOT_FOUND,
    405: INVALID,
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
"""Error types by HTTP status, as Anthropic's error page lists them."""
RATE_LIMIT = "This request would exceed your rate limit. Please try again later."
WORDS = {429: RATE_LIMIT, 500: "Internal server error", 529: "Overloaded"}


@dataclass(frozen=True, slots=True)
class DetailedError(ApiError):
    details: Mapping[str, Any] = field(default_factory=dict)


def invalid(message: str) -> ApiError:
    return ApiError(400, INVALID, message)


def not_found(message: str) -> ApiError:
    return ApiError(404, NOT_FOUND, message)


def unknown_model(name: object) -> ApiError:
    return not_found(f"{MODEL}{name}")


def missing_model(refused: ApiError) -> str | None:
    """The model that an error of `unknown_model` names; None for another error."""
    is_model = refused.type == NOT_FOUND and refused.message.startswith(MODEL)
    return refused.message.removeprefix(MODEL) if is_model else None


def of_status(status: int, message: str = "", headers: Mapping[str, str] | None = None) -> ApiError:
    """The API's error of this status, with its usual message unless one is given."""
    return ApiError(status, OF_STATUS[status], message or WORDS[status], headers or {})


def not_a_message(fault: NotAMessage) -> ApiError:
    """An error in a body, as the API words it: `messages.0.role: Input should be …`."""
    _, _, rest = str(fault).partition(": expected ")
    expected, _, got = rest.rpartition("; got ")
    missing = got.startswith("nothing")  # a hint may follow
    return invalid(f"{fault.path}: {'Field required' if missing else f'Input should be {expected}'}")


def error_body(refused: ApiError, request_id: str) -> dict[str, Any]:
    error: dict[str, Any] = {"type": refused.type, "message": refused.message}
    if isinstance(refused, DetailedError):
        error["details"] = dict(refused.details)
    return {"type": "error", "error": error, "request_id": request_id}


Wire = Mapping[str, Any]
LARGEST_PAGE = 1000
ALIASES = "_aliases"
WAYS = re.compile(r"-(explicit|in-memory|24h|1h)$")
"""What ends the ids by which our rules tell a way of caching apart: no model of an API."""


def models_of(rules: RuleBook, host: str = "anthropic") -> list[Wire]:
    """The wire objects of all models of `host` on the book's day."""
    day = rules.as_of or data_date(host)
    models: list[Wire] = []
    for row in sorted(model_rows(rules, host), key=lambda row: (-row.released.toordinal(), row.id)):
        parts = [part for part in row.id.split("-") if not (part.isdecimal() and len(part) == 8)]
        words = " ".join(part.capitalize() for part in parts if not part.isdecimal())
        version = ".".join(part for part in parts if part.isdecimal())
        model = {
            "type": "model",
            "id": row.id,
            "display_name": f"{words} {version}".strip(),  # claude-opus-4-6-20260205: Claude Opus 4.6
            "created_at": f"{row.released}T00:00:00Z",
            "deprecated_at": None,
            "retires_at": f"{row.retired}T00:00:00Z" if row.retired else None,
            "lifecycle": "retired" if row.retired and row.retired <= day else "active",
            "line": next((part for part in row.id.split("-")[1:] if part.isalpha()), None),
            "max_input_tokens": row.rules.context_window,
            "max_tokens": None,
            ALIASES: row.aliases,
        }
        models.append(model)
    return models


def listed_models(models: Sequence[Wire]) -> list[Wire]:
    """The models that an API lists: those that can be called on the day."""
    return [one for one in models if one["lifecycle"] == "active" and not WAYS.search(str(one["id"]))]


def find_model(models: Sequence[Wire], name: str) -> Wire | ApiError:
    found = next((one for one in models if name in (one["id"], *one.get(ALIASES, ()))), None)
    return unknown_model(name) if found is None else _without_aliases(found)


def _without_aliases(model: Wire) -> Wire:
    return {name: value for name, value in model.items() if name != ALIASES}


def page_of(models: Sequence[Wire], query: Mapping[str, str], lifecycles: Sequence[str] = ()) -> Wire | ApiError:
    """A page of the list: `limit`, `after_id`, `before_id`; retired models only on request."""
    wanted = lifecycles or ("active", "deprecated")
    known = [_without_aliases(one) for one in models if one.get("lifecycle", "active") in wanted]
    text = query.get("limit", "20")
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(LARGEST_PAGE))
    if not (is_number and 1 <= int(text) <= LARGEST_PAGE):
        return invalid(f"limit: Input should be a whole number from 1 to {LARGEST_PAGE}")
    places = {one["id"]: place for place, one in enumerate(known)}
    for name in ("after_id", "before_id"):
        if name in query and query[name] not in places:
            return not_found(f"{name}: {query[name]}")
    if "before_id" in query:
        end = places[query["before_id"]]
        begin = max(0, end - int(text))
        has_more = begin > 0
    else:
        begin = places[query["after_id"]] + 1 if "after_id" in query else 0
        end = begin + int(text)
        has_more = end < len(known)
    page = known[begin:end]
    ids = [one["id"] for one in page] or [None]
    return {"data": page, "has_more": has_more, "first_id": ids[0], "last_id": ids[-1]}


HELD = ("tools", "system")
MOST_KEPT = 10_000
"""Threads, and responses, that are kept; the oldest is dropped first."""


@dataclass(frozen=True, slots=True)
class HeldThread:
    """What is stored under a message id: tools and system, and the messages up to that answer.

    `last` is when the thread was last used, in seconds since the epoch.
    """

    head: Mapping[str, Any]
    messages: Sequence[Any]
    last: float = 0.0


@dataclass(frozen=True, slots=True)
class ResolvedCall:
    """A complete call. `thread`: its answer can be continued; `continues` is the message id that it continues.

    `start` is when the call began, in seconds since the epoch. `host` is whose cache and prices count (None: that of
    the server's setup).
    """

    body: Wire
    thread: MessageThread | None = None
    continues: str | None = None
    start: float = 0.0
    host: str | None = None


class Threads:
    def __init__(self) -> None:
        self._held: dict[tuple[str, str], HeldThread | None] = {}

    def resolve(self, workspace: str, body: Wire, now: float = 0.0) -> ResolvedCall | ApiError:
        """The complete call, without `thread`."""
        thread = body.get("thread")
        rest = {name: value for name, value in body.items() if name != "thread"}
        if thread is None:
            return ResolvedCall(rest if "thread" in body else body)
        kind = thread.get("type") if isinstance(thread, Mapping) else None
        if kind == "create":
            return ResolvedCall(rest, MessageThread("", _breakpoints(rest)), start=now)
        if kind != "continue":
            return invalid("thread.type: Input should be 'create' or 'continue'")
        previous = thread.get("previous_message_id")
        if not isinstance(previous, str):
            return invalid("thread.previous_message_id: Field required")
        if repeated := [name for name in HELD if rest.get(name) is not None]:
            message = f"{repeated[0]}: is held by the thread and cannot be sent again"
            return thread_error("thread_fingerprint_mismatch", message)
        if (workspace, previous) not in self._held:
            return thread_error("thread_not_found", THREAD_NOT_FOUND, 404, NOT_FOUND)
        held = self._held[workspace, previous]
        if held is None:
            return thread_error("thread_already_continued", f"thread: {previous} has already been continued")
        new = rest.get("messages")
        messages = [*held.messages, *(new if isinstance(new, list) else [])]
        use = MessageThread("", _breakpoints(rest), now - held.last)
        return ResolvedCall({**held.head, **rest, "messages": messages}, use, previous, now)

    def keep(self, workspace: str, resolved: ResolvedCall, message: Mapping[str, Any]) -> None:
        if resolved.thread is None:
            return
        if resolved.continues is not None:
            self._held[workspace, resolved.continues] = None
        head = {name: resolved.body[name] for name in HELD if resolved.body.get(name) is not None}
        said = {"role": "assistant", "content": message["content"]}
        messages = [*map(without_breakpoints, resolved.body["messages"]), *([said] if message["content"] else [])]
        self._held[workspace, str(message["id"])] = HeldThread(head, messages, resolved.start)
        if len(self._held) > MOST_KEPT:
            del self._held[next(iter(self._held))]


BLOCKS = ("content", "source")


def without_breakpoints(value: Any) -> Any:
    """A message without the breakpoints on its blocks, at any depth; tool inputs are unchanged."""
    if isinstance(value, list):
        return [without_breakpoints(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: without_breakpoints(one) if name in BLOCKS else one for name, one in value.items() if name != BREAKPOINT
    }


def _breakpoints(body: Wire) -> int:
    """How many breakpoints a body has; 0 where it is no Messages request."""
    try:
        return len(sent_breakpoints(Intake().body({"model": "", "messages": [], **body})).every)
    except NotAMessage:
        return 0


def thread_error(code: str, message: str, status: int = 400, kind: str = INVALID) -> ApiError:
    return DetailedError(status, kind, message, details={"error_code": code})


class StoredResponses:
    def __init__(self) -> None:
        self._items: dict[tuple[str, str], list[Any]] = {}

    def complete(self, workspace: str, body: Wire) -> Wire | ApiError:
        """The body with the items that it continues before its own."""
        if body.get("conversation") is not None:
            return not_found("conversation: cachecost serve keeps no conversations")
        previous = body.get("previous_response_id")
        if previous is None:
            return body
        earlier = self._items.get((workspace, str(previous)))
        if earlier is None:
            message = f"previous_response_id: Previous response with id '{previous}' not found."
            return DetailedError(400, INVALID, message, details={"error_code": "previous_response_not_found"})
        return {**body, "input": [*earlier, *_input_items(body)]}

    def keep(self, workspace: str, name: str, body: Wire, output: Sequence[Any]) -> None:
        if body.get("store") is False:
            return
        self._items[workspace, name] = [*_input_items(body), *output]
        if len(self._items) > MOST_KEPT:
            del self._items[next(iter(self._items))]


def _input_items(body: Wire) -> list[Any]:
    given = body.get("input")
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(given or ())


STRICT = "2026-10-21"
"""The version without sampling parameters, documents in assistant messages and citations in requests."""
EXTRA = "Extra inputs are not permitted"


def body_fault(body: Wire, version: str, is_count: bool = False) -> ApiError | None:
    """The first error that the API finds in `body` before it looks at the prompt; None: no error. A check runs only if
    those before it found nothing, so it may rely on them. `is_count`: for count_tokens, which takes no `max_tokens`."""
    checks = (_missing(body), () if is_count else _invalid_options(body), _by_version(body, version))
    message = next(chain(*checks), None)
    return None if message is None else invalid(message)


def _missing(body: Wire) -> Iterator[str]:
    if not isinstance(body.get("model"), str):
        yield "model: Field required" if body.get("model") is None else "model: Input should be a valid string"
    elif not body["model"]:
        yield "model: String should have at least 1 character"
    if body.get("messages") is None:
        yield "messages: Field required"
    elif not isinstance(body["messages"], list):
        yield "messages: Input should be a valid list"
    elif not body["messages"]:
        yield "messages: at least one message is required"


def _invalid_options(body: Wire) -> Iterator[str]:
    most = body.get("max_tokens")
    if most is None:
        yield "max_tokens: Field required"
    elif not isinstance(most, int) or isinstance(most, bool):
        yield "max_tokens: Input should be a valid integer"
    elif most < 0:
        yield "max_tokens: Input should be greater than or equal to 0"
    if not isinstance(body.get("stream") or False, bool):
        yield "stream: Input should be a valid boolean"


def _by_version(body: Wire, version: str) -> Iterator[str]:
    if version != STRICT:
        return
    yield from (f"{name}: {EXTRA}" for name in ("temperature", "top_p", "top_k") if body.get(name) is not None)
    blocks = (
        (f"messages.{number}.content.{index}", message.get("role"), block)
        for number, message in enumerate(body.get("messages") or [])
        if isinstance(message, Mapping)
        for index, block in enumerate(_inner(message))
    )
    for place, role, block in blocks:
        if role == "assistant" and block.get("type") == "document":
            yield f"{place}: document blocks are not supported in assistant messages"
        if role == "user" and block.get("type") == "text" and block.get("citations"):
            yield f"{place}.text.citations: {EXTRA}"
        if block.get("type") == "search_result" and any(one.get("citations") for one in _inner(block)):
            yield f"{place}.search_result.content.citations: {EXTRA}"


def _inner(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = value.get("content")
    return [one for one in content if isinstance(one, Mapping)] if isinstance(content, list) else []
