"""Finds the API, the host and the model of an HTTP request: the API from its path, the host from its name.

Read in November 2026: Anthropic's pages on Claude on AWS, Google Cloud and Microsoft Foundry, Amazon's on the
Messages API and Converse on Bedrock. An unknown name (a proxy, a gateway, a private server) leaves the host
unknown; the path still shows the API.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

Api = Literal["messages", "chat", "responses", "converse", "gemini"]

NO_CALL = "not a model call"
COUNTS = "token counting"
BATCHES = "batch API"
UNREAD = "unsupported model API"

URL = re.compile(r"(?:[a-z][a-z0-9+.-]*://(?P<name>[^/?#]*))?(?P<path>[^?#]*)", re.IGNORECASE)
"""A scrubbed address is not a valid URL (`https://[KEY]/…`), so this is not stricter."""
HOSTS = {
    "anthropic": re.compile(r"api\.anthropic\.com|aws-external-anthropic\..*"),
    "bedrock": re.compile(r"(.*\.)?bedrock-(runtime|mantle)[-.].*"),
    "google-cloud": re.compile(r"(.*[-.])?aiplatform\.(.*\.)?googleapis\.com"),
    "foundry": re.compile(r".*\.services\.ai\.azure\.com"),
    "azure": re.compile(r"(.*\.)?(openai|cognitiveservices)\.azure\.com"),
    "openrouter": re.compile(r"(.*\.)?openrouter\.ai"),
    "openai": re.compile(r"(.*\.)?(api\.openai\.com|chatgpt\.com)"),
    "gemini": re.compile(r"generativelanguage\.googleapis\.com"),
    "deepseek": re.compile(r"api\.deepseek\.com"),
    "xai": re.compile(r"(.*\.)?api\.x\.ai"),
    "mistral": re.compile(r"api\.mistral\.ai"),
    "qwen": re.compile(r".*\.aliyuncs\.com"),
    "minimax": re.compile(r"api\.minimaxi?\.(io|com)"),
    "moonshot": re.compile(r"api\.moonshot\.ai"),
    "zai": re.compile(r"api\.z\.ai"),
    "groq": re.compile(r"api\.groq\.com"),
    "together": re.compile(r"api\.together\.(xyz|ai)"),
    "fireworks": re.compile(r"api\.fireworks\.ai"),
    "cerebras": re.compile(r"api\.cerebras\.ai"),
}
"""Our host, by the name in the URL. Claude Platform on AWS is Anthropic's own; Bedrock is Amazon's. The mainland's
platforms of Moonshot and Z.ai charge other prices and are none of these."""
BY_API: dict[tuple[str, Api], str] = {
    ("foundry", "chat"): "azure",
    ("foundry", "responses"): "azure",
    ("google-cloud", "gemini"): "vertex",
    ("google-cloud", "chat"): "vertex",
}
"""Machines that serve Claude and other makers' models: the host of the latter, by the API."""
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
    """Where a model call went. `model` is "" if it is not in the URL, `host` is None if it is unknown."""

    api: Api
    host: str | None
    model: str = ""

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
            served_by = _host(found["name"] or "") or host
            served_by = BY_API.get((served_by, api), served_by) if served_by else None
            return Route(api, served_by, unquote(match.groupdict().get("model") or ""))
    return NO_CALL


def route_of_answer(url: str, answer: bytes) -> Route | None:
    """The route of a model call whose address a recorder has removed, by the answer. Its host is unknown."""
    if "/" in url:
        return None
    return next((Route(api, None) for api, pattern in ANSWERS if pattern.search(answer, 0, ANSWER_HEAD)), None)


def _host(name: str) -> str | None:
    machine = name.rpartition("@")[2].partition(":")[0].lower()
    return next((host for host, pattern in HOSTS.items() if pattern.fullmatch(machine)), None)
