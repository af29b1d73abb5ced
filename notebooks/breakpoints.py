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
# # Two or four breakpoints?
#
# **Question.** The API takes four breakpoints. When do more than two of them save anything?
#
# **Answer.** Mostly never: a charge depends on the last hit and the last breakpoint, not on their number. The
# third one helps in one case, when an entry is further back than the lookback reaches. Until August 2026 every tool
# block was a position, and it saved a third here; since September a run of them is one, and it takes a turn of ten
# calls. The fourth one, on the tools, never did.

# %%
from pathlib import Path

import matplotlib.pyplot as plt

import cachecost

root = Path() if Path("scenarios").exists() else Path("..")
scenario = root / "scenarios/two-or-four-breakpoints.yaml"
one, two = "one, on the system prompt", "two, system and last message"
three, four = "three, with the previous human message", "four, with the last tool"
result = cachecost.compare(scenario)

until_august = result.variants["every tool block a position, as until 31 August 2026"]
today, before = (one.frame(money="decimal")["cost_usd"] for one in (result, until_august))
for when, usd in (("today", today), ("until August 2026", before)):
    print(f"{when}: one ${usd[one]:.2f}, two ${usd[two]:.2f}, three ${usd[three]:.2f}, four ${usd[four]:.2f}")
assert today[four] == today[three] == today[two]
assert before[four] == before[three] < before[two] * 7 / 10

# %%
result.plot("calls")

# %% [markdown]
# The conversation is made up: eight turns of five calls, three tools at once, on a model that drops earlier thinking
# when a person speaks. We made it so that the limit can be seen. What the third breakpoint saves in it, and with other
# habits and by other rules:

# %%
saved = {"as it is": 1 - today[three] / today[two]}
for name, variant in result.variants.items():
    costs = variant.frame()["cost_usd"]
    saved[name] = 1 - costs[three] / costs[two]
for name, share in saved.items():
    print(f"{name:40} the third breakpoint saves {share:.0%}")

assert saved["as it is"] == saved["every tool block a position, one tool a call"] == 0
assert saved["every tool block a position, a model that keeps thinking"] == 0
assert saved["14 calls a turn"] > 0.1

# %% [markdown]
# ## Where the limit is
#
# A breakpoint looks back at most 20 positions. Each parallel tool adds two positions a call while every block counts.

# %%
tools = [1, 2, 3, 4, 5]
then = {"variants": [], "assumptions": [], "as_of": "2026-08-22"}
found = [cachecost.compare(scenario, sets={**then, "conversation.synthetic.tools": n}) for n in tools]
dollars = {name: [float(each[name].cost.total) for each in found] for name in (two, three)}

figure, axes = plt.subplots(figsize=(8, 3.6))
for name, values in dollars.items():
    axes.plot(tools, values, marker="o", label=name)
axes.set_xticks(tools)
axes.set_xlabel("tools in parallel")
axes.set_ylabel("USD, 40 calls")
axes.set_ylim(0)
axes.set_title("From three parallel tools on the lookback misses the last turn's entry", loc="left", fontsize=11)
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
figure.tight_layout()

# %%
gaps = [high - low for high, low in zip(dollars[two], dollars[three], strict=True)]
assert gaps[0] == gaps[1] == 0
assert all(gap > 0.5 for gap in gaps[2:])

# %% [markdown]
# ## What the strategy with two breakpoints lost until August, and why
#
# When a person speaks, this model's earlier thinking is taken out, and all after it is another prompt. What is left to
# read ends at the human message before. Only a breakpoint there (or within 20 positions) finds it.

# %%
at_the_turn = {}
for name in (two, three):
    calls = until_august[name].frame(money="decimal")
    turns = calls[calls["cause"] == "thinking_stripped"]
    at_the_turn[name] = turns["cost_usd"].sum()
    print(f"{name}: {len(turns)} turns begin with stripped thinking; they cost ${at_the_turn[name]:.2f}")

assert at_the_turn[two] > 2 * at_the_turn[three]
# It is all of the difference between the two.
assert at_the_turn[two] - at_the_turn[three] == usd[two] - usd[three]

# %% [markdown]
# **So:** one breakpoint at the end (or automatic) and one on the system prompt suffice, unless turns are long and
# the model drops thinking. Then place one on the previous human message, too. It costs nothing: a breakpoint that
# writes nothing is free. Since September 2026 a run of tool blocks counts as one position on the Claude API, so the
# limit is further out.
