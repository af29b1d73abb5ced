"""Finds the API, the host and the model of an HTTP request: the API from its path, the host from its machine.

Read in November 2026: Anthropic's pages on Claude on AWS, Google Cloud and Microsoft Foundry, Amazon's on the
Messages API and Converse on Bedrock. The path shows the API of an unknown machine, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from cachecost.providers.hosts import host_at, host_names, serving_host

Api = Literal["messages", "chat", "responses", "converse", "gemini"]

NO_CALL = "not a model call"
COUNTS = "token counting"
BATCHES = "batch API"
UNREAD = "unsupported model API"

URL = re.compile(r"(?:[a-z][a-z0-9+.-]*://(?P<name>[^/?#]*))?(?P<path>[^?#]*)", re.IGNORECASE)
"""A scrubbed address is not a valid URL (`https://[KEY]/…`), so this is not stricter."""
LEFT_OUT = {
    COUNTS: re.compile(r".*/(count[_-]tokens|input_tokens)|.*/count-tokens(@\w+)?:rawPredict|.*:countTokens"),
    BATCHES: re.compile(r".*/(messages/batches|v1/batches|model-invocation-job)(/.*)?|.*:batchGenerateContent"),
    UNREAD: re.compile(
        r".*/publishers/(?!anthropic/).*:(rawPredict|streamRawPredict)"
        r"|.*/v1/(complete|completions|interactions)|.*/api/(chat|generate)|.*/v2/chat|.*/responses/compact"
    ),
}
CLOUD = r"(?P<model>(?:locations/[^/]+/)?publishers/anthropic/models/[^/:]+):(?:rawPredict|streamRawPredict)"
CALLS: tuple[tuple[Api, str | None, re.Pattern[str]], ...] = (
    ("messages", None, re.compile(r".*/v1/messages")),
    ("messages", "bedrock", re.compile(r".*/model/(?P<model>.+)/invoke(?:-with-response-stream)?")),
    ("messages", "google-cloud", re.compile(rf".*?{CLOUD}")),
    ("converse", "bedrock", re.compile(r".*/model/(?P<model>.+)/converse(?:-stream)?")),
    ("chat", None, re.compile(r"(?:.*/deployments/(?P<model>[^/]+)|.*)/chat/completions")),
    ("responses", None, re.compile(r".*/responses")),
    ("gemini", None, re.compile(r".*/(?P<model>[^/:]+):(?:generateContent|streamGenerateContent)")),
)
"""(API, host if the path shows it, path) of model calls."""


ANSWERS: tuple[tuple[Api, re.Pattern[bytes]], ...] = (
    ("messages", re.compile(rb'event: message_start|"type": ?"message"')),
    ("chat", re.compile(rb'"object": ?"chat\.completion')),
    ("responses", re.compile(rb'"object": ?"response"')),
)
"""(API, what the beginning of its answers has)."""
ANSWER_HEAD = 4096


@dataclass(frozen=True, slots=True)
class Route:
    """Where a model call went. `model` is "" if it is not in the URL.

    `host` is the one that the path or a known machine shows, None where neither does; `machine` is the name in the URL.
    """

    api: Api
    host: str | None
    model: str = ""
    machine: str = ""

    def host_for(self, model: str, prefix: str | None = None) -> str | None:
        """The host of a call of `model`, whose name may have a host's `prefix`; an unknown machine has its own name."""
        if self.host is not None:
            return serving_host(self.host, model) or self.machine
        return prefix or host_at(self.machine, model)

    @property
    def is_opaque(self) -> bool:
        """Whether the URL names an inference profile of an account instead of a model."""
        return self.host == "bedrock" and ":application-inference-profile/" in self.model


def route_of(method: str, url: str) -> Route | str:
    """The route of a model call; for any other request, why it is skipped."""
    found = URL.match(url)
    path = found["path"].rstrip("/") if found else ""
    if found is None or method.upper() != "POST":
        return NO_CALL
    for kind, pattern in LEFT_OUT.items():
        if pattern.fullmatch(path):
            return kind
    for api, host, pattern in CALLS:
        if match := pattern.fullmatch(path):
            machine = found["name"] or ""
            at = host_at(machine)
            served_by = at if at in host_names() else host
            return Route(api, served_by, unquote(match.groupdict().get("model") or ""), machine)
    return NO_CALL


def route_of_answer(url: str, answer: bytes) -> Route | None:
    """The route of a model call whose address a recorder has removed, by the answer. Its host is unknown."""
    if "/" in url:
        return None
    return next((Route(api, None) for api, pattern in ANSWERS if pattern.search(answer, 0, ANSWER_HEAD)), None)
