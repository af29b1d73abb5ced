"""The host that the URL of a recorded call tells, and the model of a provider with two hosts."""

from __future__ import annotations

import pytest

from cachecost.conversations.readers.common.model_names import host_of, parse_model_name
from cachecost.conversations.readers.http.routes import Route, route_of
from cachecost.providers.rulefile import hosts

VERTEX = "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1/publishers"
URLS = f"""
https://api.groq.com/openai/v1/chat/completions                                      groq
https://api.together.xyz/v1/chat/completions                                         together
https://api.together.ai/v1/chat/completions                                          together
https://api.fireworks.ai/inference/v1/chat/completions                               fireworks
https://api.cerebras.ai/v1/chat/completions                                          cerebras
https://api.moonshot.ai/v1/chat/completions                                          moonshot
https://api.moonshot.cn/v1/chat/completions                                          -
https://api.z.ai/api/paas/v4/chat/completions                                        zai
https://open.bigmodel.cn/api/paas/v4/chat/completions                                -
https://api.minimax.io/v1/chat/completions                                           minimax
https://x.openai.azure.com/openai/deployments/gpt-5-mini/chat/completions            azure
https://x.cognitiveservices.azure.com/openai/deployments/gpt-4.1/chat/completions    azure
https://x.services.ai.azure.com/openai/v1/responses                                  azure
https://x.services.ai.azure.com/anthropic/v1/messages                                foundry
{VERTEX}/google/models/gemini-2.5-flash:generateContent  vertex
{VERTEX}/anthropic/models/claude-opus-5:rawPredict  google-cloud
https://aiplatform.gateway.example/llm/v1/chat/completions                           -
https://api.openai.com/v1/chat/completions                                           openai
https://api.groq.com.example/openai/v1/chat/completions                              -
"""


@pytest.mark.parametrize("line", URLS.strip().splitlines())
def test_the_host_of_a_url(line: str) -> None:
    url, host = line.split()
    route = route_of("POST", url)
    assert isinstance(route, Route)
    assert (route.host or "-") == host
    assert host == "-" or host in hosts()


@pytest.mark.parametrize(
    ("model", "provider", "expected"),
    [
        ("gemini-2.5-flash", "vertex_ai", ("gemini-2.5-flash", "vertex")),
        ("vertex_ai/gemini-2.5-flash", "", ("gemini-2.5-flash", "vertex")),
        ("claude-sonnet-4-5", "vertex_ai", ("claude-sonnet-4-5", "google-cloud")),
        ("azure/gpt-5-mini", "", ("gpt-5-mini", "azure")),
        ("claude-sonnet-4-5", "azure", ("claude-sonnet-4-5", None)),
        ("groq/llama-3.3-70b-versatile", "", ("llama-3.3-70b-versatile", "groq")),
        ("moonshotai/kimi-k2-0905", "openrouter", ("kimi-k2-0905", "openrouter")),
    ],
)
def test_the_host_of_a_provider_and_model(model: str, provider: str, expected: tuple[str, str | None]) -> None:
    assert parse_model_name(model, provider) == expected


@pytest.mark.parametrize(
    ("model", "host"),
    [("kimi-k2", "moonshot"), ("glm-4.6", "zai"), ("MiniMax-M2", "minimax"), ("gpt-oss-120b", ""), ("gpt-5", "openai")],
)
def test_the_maker_of_a_model_that_nobody_says_who_served(model: str, host: str) -> None:
    assert host_of(model) == host
