"""A program of a user: `make lint` finds nothing wrong with it."""

from decimal import Decimal

import pandas as pd
from matplotlib.figure import Figure

import cachecost


def cheapest(path: str) -> tuple[str, Decimal]:
    session = cachecost.read(path, tools_tokens=21_000)
    if isinstance(session, cachecost.Conversation):
        print(len(session.replies))
    result = cachecost.compare(session, ["none", {"name": "mine", "breakpoints": ["automatic"]}], as_of="2026-03-07")
    frame: pd.DataFrame = result.frame()
    figure: Figure = result.plot("question")
    month: Decimal = result.monthly(sessions_per_day=40)["mine"].high
    print(frame, figure, month, cachecost.replay(session, "automatic", tokens="bytes").cost.total)
    return result.best.strategy, result.best.cost.total


def others(log: str) -> list[str]:
    exact: int = cachecost.validate(log, assumptions=True).score.exact_hits
    billed: Decimal = cachecost.bill(log, project="shop").total.cost
    print(billed, cachecost.bill().frame("month"), cachecost.bill(log, as_of="2026-03-07").rewrites())
    avoidable: Decimal = cachecost.explain(log, rules={"ttl_in_key": True}).avoidable
    lower_bound: Decimal = cachecost.optimize(log, pings=False).lower_bound
    gains: list[str] = [one.name for one in cachecost.whatif(log).gains]
    codes: list[str] = [one.code for one in cachecost.lint({"model": "m", "messages": []})]
    now: Decimal | None = cachecost.next_message(log, new_tokens=200, models=["claude-opus-4-6"], tokens="bytes").cost
    demo: cachecost.Recording = cachecost.load_demo()
    exact += cachecost.bill(demo).total.calls + len(cachecost.optimize(demo).frame(money="decimal"))
    broken: int = len(cachecost.check(["a.yaml"], reports="r").failures)
    print(exact, avoidable, lower_bound, broken, now)
    return gains + codes
