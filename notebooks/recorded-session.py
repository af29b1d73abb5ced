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
# # A recorded session
#
# **Question.** I have a log of real calls with their bills. What did they cost, what was avoidable, and what should I
# change?
#
# **Answer.** In this session of 56 minutes the cache expired in three pauses. That is all that was avoidable, about
# an eighth of the bill, and one keep-alive at the right time would have saved most of it.

# %%
import cachecost

log = cachecost.load_demo()
explained = cachecost.explain(log)
print(explained)

share = explained.avoidable / explained.cost
assert set(explained.by_cause()) == {"ttl_expired"} and len(explained.findings) == 3
assert 0.08 < share < 0.18

# %%
log

# %% [markdown]
# ## Is the simulation right about this log?
#
# Before any "what if" it must get "what was" right. Each call is predicted without its own bill.

# %%
validated = cachecost.validate(log, tokens="tiktoken")
validated

# %%
score = validated.score
assert score.exact_hits == score.hits and score.exact_cold == score.cold
assert score.unknown == 1  # it read what was written before the recording began
off = abs(score.off_usd) / score.billed_usd
print(f"predicted ${score.predicted_usd:.2f}, billed ${score.billed_usd:.2f}: {off:.1%} off")
assert off < 0.05

# %% [markdown]
# ## What happened
#
# A column per call, as high as its prompt. The orange columns were written again.

# %%
log.plot()

# %% [markdown]
# ## What was avoidable

# %%
explained

# %%
explained.frame()[["call", "since_call", "layer", "tokens", "cost_usd", "message"]]

# %% [markdown]
# ## What to change
#
# Each alternative is replayed alone and compared with the log as it was sent.

# %%
other = cachecost.whatif(log)
other.plot()

# %%
best = other.gains[0]
print(f"{best.name}: {best.does}. Saves ${best.saving:.2f} ± ${best.error:.2f}.")
assert best.saving > explained.avoidable / 2
assert not best.depends_on  # under no other reading of the open rules does it turn

# %% [markdown]
# ## How far could one go at all?
#
# There is a lower bound: no legal choice of breakpoints, TTLs and keep-alives costs less for these bytes. The best plan
# found is close to it, so there is not much more to look for here.

# %%
optimized = cachecost.optimize(log)
optimized.plot()

# %%
assert optimized.lower_bound <= optimized.cost < optimized.lower_bound * 102 / 100
assert optimized.cost < explained.cost

# %% [markdown]
# ## A month of it
#
# One session is one session. If all were like this one:

# %%
ways = cachecost.compare(log, ["as recorded", "automatic@1h", "none"])
month = ways.monthly(sessions_per_day=40)
month.plot()

# %%
print(f"as recorded {month['as recorded']}; without a cache {month['none']}")
assert month["none"].low > 4 * month["as recorded"].high
