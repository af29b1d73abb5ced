"""Names of models and providers as gateways and tracers write them -> the model's own id, and our host."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("anthropic", "anthropic_text"),
    "bedrock": ("bedrock", "bedrock_converse", "aws.bedrock", "aws_bedrock", "amazon_bedrock", "aws", "amazon"),
    "google-cloud": (
        "vertex_ai",
        "vertex_ai_beta",
        "vertex_ai_anthropic_models",
        "gcp.vertex_ai",
        "vertexai",
        "google",
    ),
    "foundry": ("azure_ai", "azure.ai.inference", "az.ai.inference"),
    "azure": ("azure", "azure_openai", "azure_text", "az.ai.openai", "azure.ai.openai"),
    "openrouter": ("openrouter",),
    "openai": ("openai", "text_completion_openai"),
    "gemini": ("gemini", "gcp.gemini", "gcp.gen_ai"),
    "deepseek": ("deepseek",),
    "xai": ("xai", "x_ai"),
    "mistral": ("mistral", "mistral_ai", "mistralai", "codestral"),
    "qwen": ("dashscope", "qwen"),
    "minimax": ("minimax",),
    "moonshot": ("moonshot", "moonshotai", "moonshot_ai"),
    "zai": ("zai", "z_ai", "z.ai"),
    "groq": ("groq",),
    "together": ("together", "together_ai", "togetherai"),
    "fireworks": ("fireworks", "fireworks_ai"),
    "cerebras": ("cerebras",),
    "vllm": ("hosted_vllm", "vllm"),
    "sglang": ("sglang",),
}
HOSTS = {spelling: host for host, spellings in _SPELLINGS.items() for spelling in spellings}
"""Our name of a host, by what LiteLLM, OpenTelemetry and OpenInference call the provider."""


def parse_model_name(model: str, provider: str = "") -> tuple[str, str | None]:
    """(the model's own id, the host). The host is None where neither the name nor the provider tells it."""
    known = HOSTS.get(_plain(provider))
    head, _, rest = model.partition("/")
    if rest and (_plain(head) in HOSTS or _plain(head) == _plain(provider)):
        known, model = known or HOSTS.get(_plain(head)), rest
    if known == "bedrock":
        model = _of_bedrock(model)
    elif known == "openrouter":
        model = model.rpartition("/")[2]
    return model, serving_host(known, model)


def _plain(provider: str) -> str:
    return provider.strip().lower().replace("-", "_").replace(" ", "_")


def _of_bedrock(model: str) -> str:
    """Without the route and the region before the id ("converse/us-east-1/…"); an ARN is an id."""
    at = model.find("arn:")
    return model[at:] if at >= 0 else model.rpartition("/")[2]


def serving_host(host: str | None, model: str) -> str | None:
    """The host that serves the model where its provider has two: Gemini on Google Cloud is `vertex`.

    OpenAI serves no Claude: an OpenAI client that calls one talks to another host.
    """
    if host == "google-cloud" and "gemini" in model:
        return "vertex"
    return None if host in ("openai", "azure") and "claude" in model else host


MAKERS = {
    "openai": re.compile(r"(gpt(?!-oss)|chatgpt|codex|o[1-9])\b.*"),
    "anthropic": re.compile(r"claude\b.*"),
    "gemini": re.compile(r"(gemini|gemma)\b.*"),
    "qwen": re.compile(r"(qwen|qwq|coder-model|vision-model).*"),
    "deepseek": re.compile(r"deepseek\b.*"),
    "xai": re.compile(r"grok\b.*"),
    "mistral": re.compile(r"(mistral|devstral|codestral|magistral|ministral)\b.*"),
    "moonshot": re.compile(r"(kimi|moonshot)\b.*"),
    "zai": re.compile(r"glm\b.*"),
    "minimax": re.compile(r"minimax\b.*"),
}
"""Names of models, by the host of their maker."""


def host_of(model: str) -> str:
    """The host of a model's maker, where nothing says who served it; "" for a model of another maker."""
    name = model.rpartition("/")[2].lower()
    return next((host for host, names in MAKERS.items() if names.fullmatch(name)), "")
