"""A current model of each host in each of its ways of caching."""

from __future__ import annotations

MODELS = (
    ("anthropic", "claude-opus-5-5"),
    ("bedrock", "claude-opus-5-5"),
    ("google-cloud", "claude-opus-5-5"),
    ("foundry", "claude-opus-5-5"),
    ("openrouter", "anthropic/claude-opus-5.5"),
    ("openai", "gpt-6.1-sol"),
    ("openai", "gpt-6.1-sol-explicit"),
    ("openai", "gpt-5.5"),
    ("gemini", "gemini-3.8-flash"),
    ("gemini", "gemini-3.8-flash-explicit"),
    ("deepseek", "deepseek-flash"),
    ("xai", "grok-4.7"),
    ("mistral", "mistral-large-4"),
    ("qwen", "qwen3.8-max"),
    ("qwen", "qwen3.8-max-explicit"),
    ("minimax", "MiniMax-M2.7"),
    ("minimax", "MiniMax-M2.7-explicit"),
    ("azure", "gpt-6.1-sol"),
    ("azure", "gpt-6.1-sol-explicit"),
    ("azure", "gpt-5.5"),
    ("vertex", "gemini-3.8-flash"),
    ("moonshot", "kimi-k3"),
    ("zai", "glm-5.3"),
    ("groq", "openai/gpt-oss-120b"),
    ("together", "zai-org/GLM-5.3"),
    ("fireworks", "glm-5p3"),
    ("cerebras", "gpt-oss-120b"),
    ("vllm", "Qwen/Qwen3-8B"),
    ("sglang", "my-model"),
)
UNMARKED_HOSTS = {
    *("deepseek", "xai", "mistral", "vllm", "sglang", "moonshot", "zai", "groq", "together", "fireworks", "cerebras"),
    "vertex",
}
UNMARKED = tuple(
    (host, model) for host, model in MODELS if host in UNMARKED_HOSTS or model in {"gpt-5.5", "gemini-3.8-flash"}
)
BY_BREAKPOINTS = {"qwen3.8-max", "MiniMax-M2.7"}
"""They cache by themselves, and at breakpoints in a request that has some."""
LIKE_CLAUDE = tuple(
    (host, model)
    for host, model in MODELS
    if "claude" in model or model in {"qwen3.8-max-explicit", "MiniMax-M2.7-explicit"}
)
GPU = "".join(
    f'[[gpu]]\nhost = "{host}"\nusd_per_hour = 3.6\nprefill_tokens_per_s = 1_000\n' for host in ("vllm", "sglang")
)
"""Prices of servers of one's own: a dollar for 10**6 tokens of prefill."""
