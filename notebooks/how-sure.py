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
# # How sure are we?
#
# **Question.** A simulator says a number. Why should anyone believe it?
#
# **Answer.** Whether a call hits, and where, is right in all but a few of the knowable recorded calls. How many tokens
# a prompt has is known closely where bills say so, and to within some per cent where they do not. Three things stay
# open: early eviction, a few assumptions about the rules, and sessions that are not like yours.

# %%
from pathlib import Path

import matplotlib.pyplot as plt

import cachecost

root = Path() if Path("scenarios").exists() else Path("..")
others = {"bedrock", "cerebras", "deepseek", "gemini", "groq", "mistral", "openai", "openrouter", "together"}
others |= {"vertex", "xai", "zai"}  # other makers' models: see the evidence page
recordings = sorted((root / "scenarios/recordings").glob("traffic/*/*.jsonl"))
recordings = [path for path in recordings if path.parent.name not in others]
recordings += sorted((root / "scenarios/recordings/sessions").glob("*.jsonl"))
validated = cachecost.validate(*recordings, tokens="tiktoken")

score = validated.score
print(f"{score.calls} recorded calls with bills, from {len(recordings)} recordings.")
print(f"{score.exact_hits} of {score.hits} knowable hits and {score.exact_cold} of {score.cold} cold starts are exact.")
print(f"{score.unknown} calls read what was written before the recording began: they cannot be predicted.")
assert score.hits > 100 and score.exact_hits >= score.hits * 99 / 100
assert score.cold > 200 and score.exact_cold >= score.cold * 99 / 100

# %%
validated

# %% [markdown]
# *Exact* is strict: the same prefix is hit, and the read is right within two tokens, and no call's own bill was used.
# These are all that are not:

# %%
calls = validated.frame()
wrong = calls[~calls["exact"] & (calls["kind"] != "unknown")]
for call in wrong.itertuples():
    print(f"{Path(call.source).stem[-48:]}, call {call.call}: {call.reason}")
assert len(wrong) < 10

# %% [markdown]
# Calls with server tools add up several passes in one bill, so a length in between is an estimate there, and a hit
# a few tokens off counts as wrong. A cold start where a hit was predicted is what an early eviction looks like.
#
# And these are the calls that we have. They are many small tests of clients and a few sessions, mostly on a handful
# of models. Where no recording goes, the documentation is all there is.
#
# ## Tokens: the larger error
#
# Here is how far each predicted prompt is from the billed one, first with the other calls' bills, then without any.
# (Without bills hardly a hit is *exact*: no estimate is right within two tokens. Look at the heights.)

# %%
validated.plot()

# %%
blind = cachecost.validate(*recordings, tokens="tiktoken", calibrated=False)
blind.plot()

# %%
print(f"with bills {score.median:.2%} off at the median; without {blind.score.median:.1%}")
assert score.median < blind.score.median / 5  # although many calls are alone in their recording: no bill sizes those
assert blind.score.median < 0.15

# %% [markdown]
# The error margin of every figure is that of counts without bills. It makes a *figure* uncertain. It hardly affects a
# *comparison*, since the same text is counted on both sides:

# %%
session = cachecost.read(root / "scenarios/recordings/jp-17728322628.jsonl", tools_tokens=21_000, system_tokens=6_000)
terms = {"as_of": "2026-03-07"}
result = cachecost.compare(session, ["automatic", "automatic@1h"], **terms)
frame = result.frame()
figure_error = frame["error_usd"].max()
difference = frame["cost_usd"]["automatic"] - frame["cost_usd"]["automatic@1h"]
difference_error = abs(frame["error_usd"]["automatic"] - frame["error_usd"]["automatic@1h"])
print(f"each figure ± ${figure_error:.2f}; the difference ${difference:.2f} ± ${difference_error:.2f}")
assert difference_error < figure_error / 4
assert difference > difference_error

# %% [markdown]
# ## Assumptions: where the documentation is silent
#
# Each open rule has a default and other values. Do the bills favour one of them? The same number of calls is exact
# under every value: **no call recorded here settles any of them.** The defaults rest on documentation, not on these
# bills. (Tested on every third recording, to be quick; all of them give the same result.)

# %%
asked = cachecost.validate(*recordings[::3], tokens="tiktoken", assumptions=True)
exact = {f"{one.switch}={one.reading}": one.exact for one in asked.assumptions}
print(f"{len(exact)} values of assumptions; exact calls under each: {sorted(set(exact.values()))}")
assert set(exact.values()) == {asked.score.exact_hits + asked.score.exact_cold}

# %% [markdown]
# So check whether an answer holds under the other values, too: `rules={...}` in `compare`, `assumptions=True` in
# `explain` and `whatif`. *answer_inquiry or structured output* does so.

# %% [markdown]
# ## Eviction: the assumption in our favour
#
# No entry is evicted before its time, so hits are an upper bound. What if some are? The simulator can let entries
# expire early at random, always the same ones for a seed.

# %%
chances = [0, 0.05, 0.1, 0.2]
found = [
    cachecost.compare(session, ["automatic", "automatic@1h"], rules={"early_eviction_probability": p}, **terms)
    for p in chances
]
lines = {name: [float(each[name].cost.total) for each in found] for name in ("automatic", "automatic@1h")}

figure, axes = plt.subplots(figsize=(8, 3.6))
for name, values in lines.items():
    axes.plot([100 * p for p in chances], values, marker="o", label=name)
axes.set_xlabel("entries that expire early, %")
axes.set_ylabel("USD, the session")
axes.set_ylim(0, max(lines["automatic"]) * 1.2)
axes.set_title(
    "A single entry that is lost early costs little: the one before it is still there", loc="left", fontsize=11
)
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
figure.tight_layout()

# %%
more = {name: values[-1] / values[0] - 1 for name, values in lines.items()}
shares = ", ".join(f"{name} {share:.1%}" for name, share in more.items())
print(f"{shares} more expensive if every fifth entry expires early")
assert all(0 <= share < 0.05 for share in more.values())
assert all(hour < short for hour, short in zip(lines["automatic@1h"], lines["automatic"], strict=True))

# %% [markdown]
# Each call leaves an entry, so one that is missing is replaced by its neighbour. That is a mild kind of eviction. If a
# machine goes away, all entries of a conversation go with it, and the next call writes everything: that is not
# simulated here, and the one cold start above that nobody predicted may have been such a thing.
#
# **What this cannot say:** whether your sessions are like these. Record some (`cachecost record`), and run this
# notebook over them.
