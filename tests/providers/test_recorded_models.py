"""Models of recorded calls that were refused once: each has rules and a price on its host, on the day of a call."""

from __future__ import annotations

from datetime import date

import pytest

from cachecost.base.errors import CannotEvaluate
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from price_queries import prices_of

KNOWN = """
deepseek     deepseek-chat                                2025-03-10  deepseek-chat
deepseek     deepseek-chat                                2026-06-10  deepseek-v4-flash
deepseek     deepseek-reasoner                            2025-03-10  deepseek-reasoner
deepseek     deepseek-reasoner                            2026-06-10  deepseek-v4-flash
moonshot     kimi-k2                                      2025-10-01  kimi-k2-0711-preview
moonshot     kimi-k2-0905-preview                         2025-10-01  kimi-k2-0905-preview
moonshot     kimi-k2-thinking                             2025-12-01  kimi-k2-thinking
moonshot     kimi-k3                                      2026-07-17  kimi-k3
groq         moonshotai/kimi-k2-instruct                  2025-08-22  moonshotai/kimi-k2-instruct
groq         moonshotai/kimi-k2-instruct-0905             2025-10-01  moonshotai/kimi-k2-instruct-0905
openrouter   moonshotai/kimi-k2                           2025-10-01  moonshotai/kimi-k2
openrouter   moonshotai/kimi-k2.5                         2026-01-27  moonshotai/kimi-k2.5
xai          grok-3                                       2025-09-01  grok-3
xai          grok-3-mini                                  2025-09-01  grok-3-mini
xai          grok-4                                       2025-09-01  grok-4-0709
xai          grok-4-fast                                  2025-11-01  grok-4-fast-reasoning
xai          grok-4-fast-non-reasoning                    2026-01-14  grok-4-fast-non-reasoning
xai          grok-4-1-fast                                2026-01-14  grok-4-1-fast-reasoning
xai          grok-4-1-fast-non-reasoning                  2026-01-14  grok-4-1-fast-non-reasoning
xai          grok-code-fast-1                             2025-11-01  grok-code-fast-1
xai          grok-4.3                                     2026-05-06  grok-4.3
openrouter   x-ai/grok-4-fast                             2025-11-01  x-ai/grok-4-fast
openrouter   x-ai/grok-code-fast-1                        2025-11-01  x-ai/grok-code-fast-1
openrouter   openai/gpt-4o-mini                           2026-07-01  openai/gpt-4o-mini
openrouter   minimax/minimax-m2                           2025-12-11  minimax/minimax-m2
openrouter   google/gemini-3-flash-preview                2026-01-02  google/gemini-3-flash-preview
qwen         qwen3-next-80b-a3b-instruct                  2025-10-01  qwen3-next-80b-a3b-instruct
qwen         qwen3-next-80b-a3b-thinking                  2025-10-01  qwen3-next-80b-a3b-thinking
together     Qwen/Qwen3-Next-80B-A3B-Instruct             2025-10-01  Qwen/Qwen3-Next-80B-A3B-Instruct
mistral      mistral-large-latest                         2026-02-01  mistral-large-2512
mistral      mistral-medium-latest                        2026-02-01  mistral-medium-2508
mistral      mistral-small-latest                         2026-02-01  mistral-small-2506
mistral      magistral-medium-latest                      2026-02-01  magistral-medium-2509
mistral      magistral-small-latest                       2026-02-01  magistral-small-2509
gemini       gemini-3-flash-preview                       2026-01-02  gemini-3-flash-preview
vertex       gemini-2.5-flash                             2025-12-01  gemini-2.5-flash
vertex       gemini-3-flash-preview                       2026-01-02  gemini-3-flash-preview
openai       gpt-5-codex                                  2025-11-01  gpt-5-codex
anthropic    claude-3-opus-20240229                       2025-11-01  claude-3-opus
anthropic    claude-3-opus-latest                         2025-11-01  claude-3-opus
bedrock      anthropic.claude-3-opus-20240229-v1:0        2025-01-15  claude-3-opus
bedrock      anthropic.claude-3-5-sonnet-20241022-v2:0    2025-01-15  claude-3-5-sonnet
bedrock      us.anthropic.claude-3-5-haiku-20241022-v1:0  2025-01-15  claude-3-5-haiku
bedrock      amazon.nova-micro-v1:0                       2025-10-01  nova-micro
bedrock      us.amazon.nova-lite-v1:0                     2025-10-01  nova-lite
bedrock      us.amazon.nova-pro-v1:0                      2025-10-01  nova-pro
bedrock      us.amazon.nova-premier-v1:0                  2025-10-01  nova-premier
bedrock      openai.gpt-oss-20b-1:0                       2026-01-30  gpt-oss-20b
cerebras     gpt-oss-120b                                 2026-06-09  gpt-oss-120b
zai          glm-4.7                                      2026-06-27  glm-4.7
"""
"""Host, the name that was sent, the day, and the model whose rules hold then."""


@pytest.mark.parametrize("line", KNOWN.strip().splitlines())
def test_a_recorded_model_has_rules_and_a_price(line: str) -> None:
    host, name, day, model = line.split()
    found = RuleBook().rules(host, name, date.fromisoformat(day))
    assert found.model.rpartition(".")[2] == model.rpartition(".")[2]
    priced = prices_of(PriceBook.load(), host, found.model, date.fromisoformat(day), 1000)
    assert priced.input > 0
    assert 0 < priced.read <= priced.input


NEAREST = """
deepseek    deepseek-chatt          deepseek-chat
moonshot    kimi-k22                kimi-k2
xai         grok-4-fast-reasonin    grok-4-fast-reasoning
mistral     magistral-medium-2510   magistral-medium-2509
openrouter  x-ai/grok-code-fast-2   x-ai/grok-code-fast-1
bedrock     us.amazon.nova-prob-v1:0  nova-pro
"""


@pytest.mark.parametrize("line", NEAREST.strip().splitlines())
def test_a_model_without_facts_is_refused_with_the_nearest(line: str) -> None:
    host, name, nearest = line.split()
    with pytest.raises(CannotEvaluate) as caught:
        RuleBook().rules(host, name)
    assert str(caught.value).startswith(f"unknown model '{name}' on host {host}")
    assert nearest in str(caught.value)
