"""Models of recorded calls that were refused once: each has rules and a price on its host, on the day of a call."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from cachecost.base.errors import CannotEvaluate
from cachecost.providers.hosts import served_model
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
zai          glm-5-turbo                                  2026-06-27  glm-5-turbo
qwen         qwen-plus                                    2026-03-14  qwen-plus
qwen         qwen-plus-2025-07-28                         2026-03-14  qwen-plus
qwen         qwen-plus-latest                             2026-03-14  qwen-plus
qwen         qwen-turbo                                   2026-03-14  qwen-turbo
qwen         qwen-flash                                   2026-03-14  qwen-flash
azure        grok-4-fast-reasoning                        2025-12-01  grok-4-fast-reasoning
azure        grok-4-fast-non-reasoning                    2025-12-01  grok-4-fast-non-reasoning
azure        grok-4-1-fast-reasoning                      2026-03-14  grok-4-1-fast-reasoning
azure        grok-3-mini                                  2026-03-14  grok-3-mini
openrouter   x-ai/grok-4.1-fast                           2026-03-14  x-ai/grok-4.1-fast
openrouter   z-ai/glm-5-turbo                             2026-06-14  z-ai/glm-5-turbo
openrouter   z-ai/glm-4.7-flash                           2026-06-14  z-ai/glm-4.7-flash
openrouter   qwen/qwen-plus                               2026-03-14  qwen/qwen-plus
openrouter   openai/gpt-4o-2024-08-06                     2026-03-14  openai/gpt-4o
openrouter   gemini-2.5-pro:nitro                         2026-03-14  google/gemini-2.5-pro
openrouter   gpt-5:floor                                  2026-03-14  openai/gpt-5
openrouter   glm-4.6:exacto                               2026-03-14  z-ai/glm-4.6
openrouter   claude-sonnet-4.5@preset/mine                2026-03-14  claude-sonnet-4-5
openrouter   gpt-oss-120b:nitro@preset/mine               2026-03-14  openai/gpt-oss-120b
gemini       gemini-2.5-flash-preview-09-2025             2026-03-14  gemini-2.5-flash
gemini       gemini-3-pro-preview                         2026-01-14  gemini-3-pro-preview
vertex       gemini-3-pro-preview                         2026-01-14  gemini-3-pro-preview
gemini       models/gemini-2.0-flash-001                  2026-03-14  gemini-2.0-flash
openai       ft:gpt-4o-mini-2024-07-18:mine::Ab12         2026-03-14  ft:gpt-4o-mini
openai       ft:gpt-4.1-2025-04-14:mine:name:Ab12         2026-03-14  ft:gpt-4.1
openai       gpt-5.6-sol-explicit                         2026-08-14  gpt-5.6-sol-explicit
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


PRICES = """
qwen        qwen-plus                        256000  0.4   0.08   1.2
qwen        qwen-plus                        256001  1.2   0.24   3.6
qwen        qwen-flash                       256001  0.25  0.05   2
openai      ft:gpt-4o-2024-08-06:mine::A       1000  3.75  1.875  15
openai      ft:gpt-4.1-nano-2025-04-14:m::A    1000  0.2   0.05   0.8
openrouter  grok-4-fast:free                   1000  0     0      0
openrouter  gemini-2.5-pro:nitro               1000  1.25  0.31   10
azure       grok-4-fast-reasoning              1000  0.2   0.05   0.5
azure       grok-3                             1000  3     3      15
zai         glm-4.7-flash                      1000  0     0      0
"""
"""Host, name, tokens of the prompt, and USD per 10**6 tokens of input, reads and output."""


@pytest.mark.parametrize("line", PRICES.strip().splitlines())
def test_the_price_of_a_variant(line: str) -> None:
    host, name, tokens, *prices = line.split()
    found = prices_of(PriceBook.load(), host, name, date(2026, 3, 14), int(tokens))
    assert [found.input, found.read, found.output] == list(map(Decimal, prices))


@pytest.mark.parametrize("name", ["ft:gpt-5-2025-08-07:mine::A", "gpt-4o:extended", "gpt-4o-mini:online"])
def test_a_variant_without_a_published_price_has_none(name: str) -> None:
    """OpenAI has no price of such a model; the last two are entries of OpenRouter's catalogue, or have a fee."""
    with pytest.raises(CannotEvaluate):
        prices_of(PriceBook.load(), "openai" if name.startswith("ft") else "openrouter", name, date(2026, 3, 14), 1000)


@pytest.mark.parametrize(
    ("host", "asked", "answered", "served"),
    [
        ("openrouter", "auto", "openai/gpt-4o-mini", "gpt-4o-mini"),
        ("openrouter", "@preset/mine", "google/gemini-2.5-flash", "gemini-2.5-flash"),
        ("azure", "my-deployment", "gpt-4o-2024-08-06", "gpt-4o-2024-08-06"),
        ("gemini", "gemini-flash-latest", "gemini-2.5-flash", "gemini-2.5-flash"),
        ("mistral", "mistral-medium-latest", "mistral-medium-2508", "mistral-medium-2508"),
        ("openai", "gpt-4o", "gpt-4o-2024-08-06", "gpt-4o"),
        ("openai", "gpt-4o", "gpt-4.1", "gpt-4o"),
        (None, "gpt-4o", "something-else", "gpt-4o"),
        ("openrouter", "some/model", "some/model-2", "some/model"),
        ("api.example.com", "mine", "gpt-4o", "mine"),
    ],
)
def test_the_model_behind_a_name(host: str | None, asked: str, answered: str, served: str) -> None:
    assert served_model(host, asked, answered) == served


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
