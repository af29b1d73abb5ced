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
# # 5 minutes or 1 hour?
#
# **Question.** An entry for an hour costs 2 × the input price to write, one for five minutes 1.25 ×. Which is cheaper?
#
# **Answer.** It depends on the pauses, and on hardly anything else. No pause over five minutes: five. Several between
# five minutes and an hour: an hour. In the session below an hour saves about a tenth. Pauses beyond an hour make an
# hour the worst of both.

# %%
from pathlib import Path

import matplotlib.pyplot as plt

import cachecost

root = Path() if Path("scenarios").exists() else Path("..")
result = cachecost.compare(root / "scenarios/ttl.yaml")

usd = result.frame()["cost_usd"]
saved = 1 - usd["1h"] / usd["5m"]
print(
    f"Five minutes ${usd['5m']:.2f}, one hour ${usd['1h']:.2f}: {saved:.0%} less. Nothing that only moves breakpoints"
)
print(f"and TTLs goes below ${result.frame()['lower_bound_usd']['1h']:.2f}.")
assert 0.05 < saved < 0.2
assert result.best.strategy == "1h"

# %%
result.plot()

# %% [markdown]
# An hour on the static prefix alone (tools and system) is nearly no help here: the messages are what is long.

# %%
prefix = usd["1h on the static prefix, 5m on the messages"]
assert usd["1h"] < prefix < usd["5m"]
assert (usd["5m"] - prefix) / (usd["5m"] - usd["1h"]) < 0.25

# %% [markdown]
# ## Where it turns
#
# A made-up conversation, all of whose pauses are equally long. Only their length changes. The model keeps earlier
# thinking; one that drops it rewrites much of each turn whatever the TTL is.

# %%
scenario = root / "scenarios/two-or-four-breakpoints.yaml"
short, hour = "automatic@5m", "automatic@1h"
base = {"variants": [], "assumptions": [], "question_about": [], "published_figures": [], "budget": []}
base |= {"strategies": [short, hour], "compare_to": short, "conclusion": []}
base["model"] = "claude-opus-4-6"
minutes = [1, 3, 4.7, 5.3, 15, 30, 45, 58, 61, 75]
found = [
    cachecost.compare(scenario, sets={**base, "conversation.synthetic.pauses.turn": round(60 * n)}) for n in minutes
]
dollars = {name: [float(each[name].cost.total) for each in found] for name in (short, hour)}

figure, axes = plt.subplots(figsize=(8, 3.6))
for name, values in dollars.items():
    axes.plot(minutes, values, marker="o", label=name)
axes.set_xlabel("minutes between the last answer and the next message")
axes.set_ylabel("USD, 40 calls")
axes.set_ylim(0)
axes.set_title("1h is cheaper for pauses of 5 to 60 minutes, and costs more on either side", loc="left", fontsize=11)
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
figure.tight_layout()

# %%
cheaper = {n: one < other for n, one, other in zip(minutes, dollars[hour], dollars[short], strict=True)}
assert not any(cheaper[n] for n in minutes if n < 5)
assert all(cheaper[n] for n in minutes if 5 < n < 60)
assert not any(cheaper[n] for n in minutes if n > 60)

# %% [markdown]
# ## How many pauses does it take?
#
# Real sessions have a few of each. In a recorded Claude Code session of 56 minutes:

# %%
other = cachecost.whatif(cachecost.load_demo(), assumptions=False)
edge = other.whatif.break_even
under, between, over = edge.pauses
print(f"{under} pauses under 5 minutes, {between} up to an hour, {over} longer.")
print(f"The 1h TTL saves money from {int(edge.needed_pauses) + 1} pauses between 5 and 60 minutes on.")
print(f"An hour on every breakpoint saves ${other['ttl=1h'].saving:.2f} of ${other.cost:.2f}.")
assert other["ttl=1h"].is_gain == (between > edge.needed_pauses)

# %% [markdown]
# It is close, and a rule of thumb would have been a guess. In that session one keep-alive before the five minutes
# are over does more than an hour would:

# %%
other.plot()

# %%
assert other["keep-alive=295s:1"].saving > other["ttl=1h"].saving > 0

# %% [markdown]
# **How sure?** TTLs are documented, and in these recordings entries are gone when they should be. What no rule
# says is that an entry may be evicted before its time: if that happens often, an hour is worth less than this.
