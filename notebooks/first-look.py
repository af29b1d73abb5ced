# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A first look
#
# A real session of a coding assistant: 12 turns, 200 calls, 230 tool calls, and 41 times a tool asked the assistant
# a question. The recording holds sizes and digests, not a word of it. What did its prompts cost, and what would they
# have cost another way?

# %%
from pathlib import Path

import cachecost

here = Path("scenarios/recordings") if Path("scenarios").exists() else Path("../scenarios/recordings")
session = cachecost.read(here / "jp-17728322628.jsonl", tools_tokens=21_000, system_tokens=6_000)
len(session.replies), len(session.inquiries)

# %% [markdown]
# Three ways to ask those questions, on the model the session ran on, at that day's prices and rules.

# %%
ways = ["structured output, no tools", "answer_inquiry, forced", "cheaper model, with cache hint"]
result = cachecost.compare(session, ways, as_of="2026-03-07")
result.frame()[["calls", "read", "write_5m", "cost_usd", "question_usd"]]

# %%
result.plot()

# %% [markdown]
# Call by call: what the questions of the first way cost, and why so much was written again.

# %%
calls = result["structured output, no tools"].frame()
calls[calls["inquiry"].notna()].groupby("cause")[["read", "write_5m", "cost_usd"]].sum()
