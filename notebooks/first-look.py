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
# **Question.** What did the prompts of one real session cost, and what would they have cost sent another way?
#
# **Answer.** Nearly everything that is sent is sent again, so the cache decides the price: without it the session
# costs several times as much. The next cell works it out; the sentence under it has the figures.

# %%
from pathlib import Path

import cachecost

root = Path() if Path("scenarios").exists() else Path("..")
session = cachecost.read(root / "scenarios/recordings/jp-17728322628.jsonl", tools_tokens=21_000, system_tokens=6_000)
result = cachecost.compare(session, ["none", "system-only", "automatic", "automatic@1h"], as_of="2026-03-07")

none, automatic = result["none"].cost.total, result["automatic"].cost.total
print(
    f"Without a cache ${none:,.2f}; with one automatic breakpoint ${automatic:,.2f}: {none / automatic:.1f} times less."
)
assert 3 < none / automatic < 10

# %% [markdown]
# The recording is a coding assistant's session: it holds sizes and digests, and no text. It has no
# tools and no system prompt, so 27,000 tokens stand in for them. That number is an assumption, and it is ours.

# %%
print(f"{len(session.replies)} calls, {len(session.inquiries)} questions that tools asked the assistant")

# %%
result

# %%
result.plot()

# %% [markdown]
# **Read** tokens cost a tenth, **written** ones a quarter more than plain input (twice as much for an hour). A cache
# saves money when what is written is read often enough. Call by call:

# %%
result["automatic"].plot()

# %% [markdown]
# Most columns are grey: their prompt was read. The orange ones were written again. Why? Each call has a cause.

# %%
calls = result["automatic"].frame()
written = "usage.cache_creation_input_tokens"
expensive = calls[calls[written] > 20_000]
expensive.groupby("cause", observed=True)[[written, "cost_usd"]].agg(["count", "sum"])

# %%
by_cause = expensive.groupby("cause", observed=True)[written].sum()
expired = int((expensive["cause"] == "ttl_expired").sum())
print(f"{expired} calls came too late, and wrote {by_cause['ttl_expired']:,} tokens again.")
assert expired >= 3 and by_cause["ttl_expired"] > by_cause.sum() * 3 / 4

# %% [markdown]
# The tall orange columns are pauses: the person thought for over five minutes, and the entry had expired. *5 minutes or
# 1 hour* asks what to do about that.
#
# What would it come to? Forty such sessions a day, with the error of the token counts beside it. No session is like
# another, so take it as an order of magnitude.

# %%
month = result.monthly(sessions_per_day=40)
month

# %%
assert month["automatic"].high < month["none"].low
