"""Our host of a provider as coding agents name it, and of a model whose provider tells nothing.

Sources: the provider ids of models.dev, which opencode uses; of Cline 3.89 and Roo Code 3.53 (`apiProvider`); of
Crush's catalogue (catwalk), all read in November 2026.
"""

from __future__ import annotations

from cachecost.conversations.readers.common.model_names import parse_model_name, serving_host

_HOSTS = {
    "amazon-bedrock": "bedrock",
    "google": "gemini",
    "google-vertex": "google-cloud",
    "google-vertex-anthropic": "google-cloud",
    "vertex": "google-cloud",
    "vertexai": "google-cloud",
    "openai-native": "openai",
    "openai-codex": "openai",
    "claude-code": "anthropic",
    "alibaba": "qwen",
}
"""Where `model_names` has another meaning of the word, or none."""
_FAMILIES = (
    ("claude", "anthropic"),
    ("gpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("codex", "openai"),
    ("gemini", "gemini"),
    ("grok", "xai"),
    ("deepseek", "deepseek"),
    ("mistral", "mistral"),
    ("codestral", "mistral"),
    ("devstral", "mistral"),
    ("magistral", "mistral"),
    ("qwen", "qwen"),
    ("kimi", "moonshot"),
    ("glm", "zai"),
    ("minimax", "minimax"),
)
"""How a maker's models begin: for gateways and subscriptions, which have no prices of their own."""


def parse_provider_model(model: str, provider: str) -> tuple[str, str | None]:
    """(the model's own id, the host). Behind a gateway the host is the model's maker; None where that is unknown."""
    own, host = parse_model_name(model, provider)
    name = own.rpartition("/")[2] if host is None else own
    return name, serving_host(_HOSTS.get(provider.lower()), name) or host or _maker(name)


def _maker(model: str) -> str | None:
    return next((host for start, host in _FAMILIES if model.lower().startswith(start)), None)
