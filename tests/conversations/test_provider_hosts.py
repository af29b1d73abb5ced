"""Models and hosts as coding agents name them."""

from __future__ import annotations

import pytest

from cachecost.conversations.readers.common.provider_hosts import parse_provider_model


@pytest.mark.parametrize(
    ("model", "provider", "own", "host"),
    [
        ("claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5", "anthropic"),
        ("claude-sonnet-4-5", "claude-code", "claude-sonnet-4-5", "anthropic"),
        ("anthropic/claude-sonnet-4.5", "openrouter", "claude-sonnet-4.5", "openrouter"),
        ("anthropic/claude-sonnet-4.5", "cline", "claude-sonnet-4.5", "anthropic"),
        ("anthropic/claude-sonnet-4.5", "", "claude-sonnet-4.5", "anthropic"),
        ("claude-sonnet-4@20250514", "vertex", "claude-sonnet-4@20250514", "google-cloud"),
        ("gemini-3-pro", "google", "gemini-3-pro", "gemini"),
        ("gemini-3-pro", "google-vertex", "gemini-3-pro", "vertex"),
        ("gpt-5", "github-copilot", "gpt-5", "openai"),
        ("gpt-5", "openai-native", "gpt-5", "openai"),
        ("grok-code-fast-1", "opencode", "grok-code-fast-1", "xai"),
        ("kimi-k2", "moonshot", "kimi-k2", "moonshot"),
        ("moonshotai/kimi-k2", "cline", "kimi-k2", "moonshot"),
        ("moonshotai/kimi-k2-instruct-0905", "groq", "kimi-k2-instruct-0905", "groq"),
        ("openai/gpt-oss-120b", "groq", "gpt-oss-120b", "groq"),
        ("accounts/fireworks/models/kimi-k2p5", "fireworks-ai", "accounts/fireworks/models/kimi-k2p5", "fireworks"),
        ("glm-4.6", "zai", "glm-4.6", "zai"),
        ("gpt-5", "azure", "gpt-5", "azure"),
    ],
)
def test_a_provider_is_a_host_and_a_gateway_is_the_maker(model: str, provider: str, own: str, host: str | None) -> None:
    assert parse_provider_model(model, provider) == (own, host)
