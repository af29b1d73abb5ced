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
        ("gemini-3-pro", "google-vertex", "gemini-3-pro", "google-cloud"),
        ("gpt-5", "github-copilot", "gpt-5", "openai"),
        ("gpt-5", "openai-native", "gpt-5", "openai"),
        ("grok-code-fast-1", "opencode", "grok-code-fast-1", "xai"),
        ("kimi-k2", "moonshot", "kimi-k2", None),
    ],
)
def test_a_provider_is_a_host_and_a_gateway_is_the_maker(model: str, provider: str, own: str, host: str | None) -> None:
    assert parse_provider_model(model, provider) == (own, host)
