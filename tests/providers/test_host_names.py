"""Which host an address, a provider, a message's id and a model's name show, and which of them decides."""

from __future__ import annotations

import pytest

from cachecost.conversations.readers.http.exchange import Route, route_of
from cachecost.providers.hosts import (
    AUTO_HOST,
    catalogue,
    host_at,
    host_names,
    host_of,
    host_of_message,
    host_of_model,
    hosts,
    maker_of,
    parse_model_name,
)

VERTEX = "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1/publishers"
URLS = f"""
https://api.groq.com/openai/v1/chat/completions                       llama-3.3  groq
https://api.together.xyz/v1/chat/completions                          kimi-k2    together
https://api.together.ai/v1/chat/completions                           kimi-k2    together
https://api.fireworks.ai/inference/v1/chat/completions                kimi-k2p5  fireworks
https://api.cerebras.ai/v1/chat/completions                           qwen-3     cerebras
https://api.moonshot.ai/v1/chat/completions                           kimi-k2    moonshot
https://api.moonshot.cn/v1/chat/completions                           kimi-k2    api.moonshot.cn
https://api.z.ai/api/paas/v4/chat/completions                         glm-5      zai
https://api.z.ai/api/anthropic/v1/messages                            glm-5      zai
https://open.bigmodel.cn/api/paas/v4/chat/completions                 glm-5      open.bigmodel.cn
https://api.minimax.io/v1/chat/completions                            MiniMax-M2 minimax
https://api.avian.io/v1/chat/completions                              kimi-k2.5  api.avian.io
https://api.avian.io/v1/chat/completions                              moonshotai/kimi-k2.5  api.avian.io
https://x.openai.azure.com/openai/deployments/d/chat/completions      gpt-5-mini azure
https://x.cognitiveservices.azure.com/openai/deployments/d/chat/completions  gpt-4.1  azure
https://x.services.ai.azure.com/openai/v1/responses                   gpt-5      azure
https://x.services.ai.azure.com/anthropic/v1/messages                 claude-opus-5  foundry
{VERTEX}/google/models/gemini-2.5-flash:generateContent               gemini-2.5-flash  vertex
{VERTEX}/anthropic/models/claude-opus-5:rawPredict                    claude-opus-5  google-cloud
https://aiplatform.gateway.example/llm/v1/chat/completions            gpt-5      aiplatform.gateway.example
https://gateway.example:8443/v1/messages                              claude-opus-5  gateway.example
https://gateway.example/v1/messages                                   bedrock/us.anthropic.claude-opus-5  bedrock
https://key@API.openai.com/v1/chat/completions                        gpt-5      openai
https://api.openai.com/v1/chat/completions                            claude-opus-5  api.openai.com
https://api.groq.com.example/openai/v1/chat/completions               kimi-k2    api.groq.com.example
http://localhost:4000/v1/messages                                     claude-opus-5  -
http://127.0.0.1:8000/v1/chat/completions                             gpt-5      -
http://127.0.0.1:8000/v1/chat/completions                             glm-5      127.0.0.1
http://vllm:8000/v1/chat/completions                                  Qwen/qwen3-8b  vllm
http://[::1]:8000/v1/messages                                         claude-opus-5  -
https://[KEY]/v1/messages                                             claude-opus-5  -
/v1/messages                                                          kimi-k2    -
"""


@pytest.mark.parametrize("line", URLS.strip().splitlines())
def test_the_host_of_a_url(line: str) -> None:
    url, written, host = line.split()
    route = route_of("POST", url)
    assert isinstance(route, Route)
    assert (route.host_for(*parse_model_name(written)) or "-") == host


def test_every_host_with_rules_has_a_row_of_names() -> None:
    assert {*host_names()} == {*hosts()}


def test_no_word_names_two_hosts() -> None:
    rows = host_names().items()
    for host, names in rows:
        assert not [other for other, row in rows if other != host and names.providers & row.providers]


NAMES = [
    ("glm-5", "zai"),
    ("GLM-4.6", "zai"),
    ("kimi-k3", "moonshot"),
    ("deepseek-v4-pro", "deepseek"),
    ("qwen3.8-max", "qwen"),
    ("MiniMax-M3", "minimax"),
    ("gemini-3.8-flash", "gemini"),
    ("models/gemini-3.8-flash", "gemini"),
    ("gpt-6-sol", "openai"),
    ("ft:gpt-4o-mini:mine", "openai"),
    ("o4-mini", "openai"),
    ("grok-4.7", "xai"),
    ("mistral-large-4", "mistral"),
    ("claude-opus-5", "anthropic"),
    ("claude-opus-5[1m]", "anthropic"),
    ("us.anthropic.claude-opus-5", "bedrock"),
    ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock"),
    ("global.anthropic.claude-opus-5", "bedrock"),
    ("anthropic.claude-opus-5", "bedrock"),
    ("us-gov.anthropic.claude-opus-5", "bedrock"),
    ("openai.gpt-oss-120b-1:0", "bedrock"),
    ("amazon.nova-pro-v1:0", "bedrock"),
    ("arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-5", "bedrock"),
    ("arn:aws:bedrock:us-east-1:1:application-inference-profile/abc", "bedrock"),
    ("claude-opus-4-5@20251101", "google-cloud"),
    ("claude-opus-5@default", "google-cloud"),
    ("projects/p/locations/us-east5/publishers/anthropic/models/claude-opus-5", "google-cloud"),
    ("publishers/google/models/gemini-3.8-flash", "vertex"),
    ("anthropic/claude-opus-4.5", "anthropic"),
    ("moonshotai/kimi-k3", "moonshot"),
    ("z-ai/glm-5", "zai"),
    ("x-ai/grok-4.7", "xai"),
    ("google/gemini-3.8-flash", "gemini"),
    ("z-ai/glm-4.5:free", "openrouter"),
    ("openrouter/z-ai/glm-5", "openrouter"),
    ("bedrock/converse/us.anthropic.claude-opus-5", "bedrock"),
    ("vertex_ai/claude-opus-5", "google-cloud"),
    ("vertex_ai/gemini-3.8-flash", "vertex"),
    ("azure/gpt-6-sol", "azure"),
    ("groq/llama-3.3-70b-versatile", "groq"),
    ("accounts/fireworks/models/kimi-k3", "fireworks"),
    ("github_copilot/gpt-6-sol", "openai"),
    ("gpt-oss-120b", ""),
    ("llama-3.3-70b", ""),
    ("", ""),
]


@pytest.mark.parametrize(("model", "host"), NAMES)
def test_the_host_that_a_model_s_name_shows(model: str, host: str) -> None:
    assert host_of_model(model) == host


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("anthropic/claude-opus-4.5", "claude-opus-4-5"),
        ("claude-opus-5[1m]", "claude-opus-5"),
        ("z-ai/glm-5", "glm-5"),
        ("moonshotai/kimi-k3", "kimi-k3"),
        ("minimax/minimax-m3", "MiniMax-M3"),
    ],
)
def test_a_gateway_s_name_is_the_model_s(model: str, expected: str) -> None:
    assert catalogue(host_of_model(model)).model(model).id == expected


@pytest.mark.parametrize(
    "host", ["anthropic", "zai", "moonshot", "deepseek", "qwen", "minimax", "gemini", "openai", "xai"]
)
def test_every_model_of_a_maker_is_known_by_its_name_alone(host: str) -> None:
    assert {host_of_model(name) for name in catalogue(host).names} == {host}


@pytest.mark.parametrize(
    ("model", "provider", "expected"),
    [
        ("gemini-2.5-flash", "vertex_ai", ("gemini-2.5-flash", "vertex")),
        ("gemini-3-pro", "google", ("gemini-3-pro", "gemini")),
        ("gemini-3-pro", "google-vertex", ("gemini-3-pro", "vertex")),
        ("claude-sonnet-4-5", "vertex_ai", ("claude-sonnet-4-5", "google-cloud")),
        ("claude-sonnet-4-5", "google", ("claude-sonnet-4-5", "google-cloud")),
        ("claude-sonnet-4@20250514", "vertex", ("claude-sonnet-4@20250514", "google-cloud")),
        ("azure/gpt-5-mini", "", ("gpt-5-mini", "azure")),
        ("claude-sonnet-4-5", "azure", ("claude-sonnet-4-5", None)),
        ("claude-sonnet-4-5", "openai", ("claude-sonnet-4-5", None)),
        ("claude-sonnet-4-5", "azure_ai", ("claude-sonnet-4-5", "foundry")),
        ("gpt-5", "azure_ai", ("gpt-5", "azure")),
        ("gpt-5", "openai-native", ("gpt-5", "openai")),
        ("claude-sonnet-4-5", "claude-code", ("claude-sonnet-4-5", "anthropic")),
        ("groq/llama-3.3-70b-versatile", "", ("llama-3.3-70b-versatile", "groq")),
        ("moonshotai/kimi-k2-0905", "openrouter", ("kimi-k2-0905", "openrouter")),
        ("anthropic/claude-sonnet-4.5", "openrouter", ("claude-sonnet-4.5", "openrouter")),
        ("anthropic/claude-sonnet-4.5", "cline", ("claude-sonnet-4.5", None)),
        ("moonshotai/kimi-k2-instruct-0905", "groq", ("kimi-k2-instruct-0905", "groq")),
        ("openai/gpt-oss-120b", "groq", ("gpt-oss-120b", "groq")),
        ("accounts/fireworks/models/kimi-k2p5", "fireworks-ai", ("accounts/fireworks/models/kimi-k2p5", "fireworks")),
        ("gpt-5", "github-copilot", ("gpt-5", None)),
    ],
)
def test_the_host_of_a_provider_and_model(model: str, provider: str, expected: tuple[str, str | None]) -> None:
    assert parse_model_name(model, provider) == expected


@pytest.mark.parametrize(
    ("message", "host"),
    [
        ("msg_bdrk_01AbC", "bedrock"),
        ("msg_vrtx_01AbC", "google-cloud"),
        ("gen-1763000000-AbC", "openrouter"),
        ("msg_01AbC", None),
        ("gen-1", None),
        ("", None),
    ],
)
def test_the_host_that_a_message_s_id_shows(message: str, host: str | None) -> None:
    assert host_of_message(message) == host


@pytest.mark.parametrize(
    ("stated", "default", "model", "host"),
    [
        (None, AUTO_HOST, "glm-5", "zai"),
        ("", AUTO_HOST, "glm-5", "zai"),
        ("openrouter", AUTO_HOST, "glm-5", "openrouter"),
        (None, "openrouter", "glm-5", "openrouter"),
        (None, "anthropic", "glm-5", "anthropic"),
        ("bedrock", "anthropic", "claude-opus-5", "bedrock"),
        ("api.avian.io", AUTO_HOST, "kimi-k3", "api.avian.io"),
        ("api.avian.io", "moonshot", "kimi-k3", "moonshot"),
        (None, AUTO_HOST, "llama", "anthropic"),
    ],
)
def test_what_was_recorded_wins_then_the_option_then_the_name(
    stated: str | None, default: str, model: str, host: str
) -> None:
    assert host_of(stated, default, model) == host


def test_weights_that_are_public_may_run_anywhere() -> None:
    assert {name for name, row in host_names().items() if row.open_models.fullmatch("x")} == {
        *("deepseek", "mistral", "qwen", "minimax", "moonshot", "zai")
    }
    assert host_at("10.0.0.7:8000", "gemma-3") == "10.0.0.7"
    assert host_at("10.0.0.7:8000", "gemini-3.8-flash") is None
    assert maker_of("gemma-3") == "gemini"
