"""RFC013's branching point, and its seven plans for later."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from tools.seed_claims.claim import Claim, share, tokens, usd
from tools.seed_claims.claim_scenario import ClaimScenario, claim_scenario

WIDE = (
    "conversation.synthetic.tools=12",
    "conversation.synthetic.sizes.tool_result=225",
    "conversation.synthetic.sizes.tool_use=25",
)
PLAIN = "without a branching point"


def claims() -> Iterator[Claim]:
    short, long = (
        claim_scenario("rfc013-branching"),
        claim_scenario("rfc013-branching", "conversation.synthetic.pauses.loop=80"),
    )
    yield from _branching(short, long)
    yield _split()
    yield _by_length()
    yield _children()
    yield _versus("forks", "The same, where a person goes back to the fork.", "rfc013-fork-aware", short, long)
    yield _analytics(short)
    yield _adaptive(long)
    yield _versus(
        "tree", "Later (6): breakpoints where the tree of conversations branches.", "rfc013-tree", short, long
    )
    yield _budget()


def _branching(short: ClaimScenario, long: ClaimScenario) -> Iterator[Claim]:
    quick, slow = (_saved(part, "rfc013-as-written") for part in (short, long))
    late = [part.rows(name)[10].usage.read for part in (short, long) for name in (PLAIN, "rfc013-as-written")]
    yield Claim(
        "rfc013.branching",
        "A breakpoint before the latest human message makes another try at it cheap.",
        f"{usd(quick)} ({share(quick / short.cost(PLAIN))}) in turns of 32 s, as the last message's "
        "breakpoint is found too: "
        f"a branch reads {tokens(late[0])} and {tokens(late[1])} tokens. {usd(slow)} "
        f"({share(slow / long.cost(PLAIN))}) "
        f"in turns of 320 s: {tokens(late[2])} and {tokens(late[3])}",
        _both(short),
        "right under a condition: it pays where a turn is longer than the TTL; else it saves the last answer",
        {"saved_short": quick, "saved_long": slow, "reads_plain": late[2], "reads_written": late[3]},
    )
    coded, coded_slow = (_saved(part, "rfc013-as-coded") for part in (short, long))
    yield Claim(
        "rfc013.branching-coded",
        "The code does so.",
        "it places a breakpoint on the message before the human one before that, and none before the first: "
        f"{usd(coded)} in "
        "short turns, "
        f"{usd(coded_slow)} in long ones",
        _both(short),
        f"wrong: {share(1 - coded_slow / slow, 0)} of what the text would save is lost in long turns",
        {"saved_short": coded, "saved_long": coded_slow},
    )


def _split() -> Claim:
    varying = claim_scenario("rfc013-varying-system")
    before, split = (
        varying.cost(name)
        for name in ("a breakpoint on the last tool", "the static part first, with a breakpoint of its own")
    )
    read = varying.rows("the static part first, with a breakpoint of its own")[2].usage.read
    return Claim(
        "rfc013.split",
        "Later (1): separate what is static in the system prompt from what is dynamic.",
        f"{usd(split)} instead of {usd(before)}: {share(1 - split / before, 0)} less; {tokens(read)} tokens "
        "are read at a "
        "new turn",
        varying.how,
        "right, if the static part comes first",
        {"split": split, "before": before, "read": read},
    )


def _by_length() -> Claim:
    plain, wide = claim_scenario("rfc013-long"), claim_scenario("rfc013-long", *WIDE)
    saved, saved_wide = (_saved(part, "rfc013-token-breakpoints") for part in (plain, wide))
    branch = _saved(wide, "rfc013-as-written")
    return Claim(
        "rfc013.by-length",
        "Later (2): breakpoints at every 100,000 tokens of a long conversation.",
        f"{usd(saved)} in 150,000 tokens with 3 tools a call; {usd(saved_wide)} "
        f"({share(saved_wide / wide.cost(PLAIN), 0)}) with 12, whose 25 blocks exceed the lookback of 20. "
        "The branching "
        f"point saves {usd(branch)} there",
        f"{plain.how}; with 12 tools a call",
        "right under a condition: it saves nothing while each call finds the entry of the last one, and a "
        "nearer breakpoint saves more",
        {"saved": saved, "saved_wide": saved_wide, "branch_wide": branch},
    )


def _adaptive(long: ClaimScenario) -> Claim:
    wide = claim_scenario("rfc013-long", *WIDE)
    gained, back = _saved(wide, "rfc013-adaptive"), _saved(long, "rfc013-adaptive")
    return Claim(
        "rfc013.adaptive",
        "Later (5): learn from the conversation where breakpoints belong.",
        f"{usd(gained)} ({share(gained / wide.cost(PLAIN), 0)}) with 12 tools a call, {usd(back)} where a "
        "person goes back "
        "after long turns",
        f"{claim_scenario('rfc013-long').how} with 12 tools a call; {long.how}",
        "right under a condition (the rule that learns): this one is ours (`adaptive`)",
        {"gained_wide": gained, "saved_long": back},
    )


def _analytics(short: ClaimScenario) -> Claim:
    usage = short.ledger("rfc013-as-written").usage
    rate, saved = Decimal(usage.read) / usage.total_input, 1 - _input_share(short)
    return Claim(
        "rfc013.analytics",
        "Later (4): report hit rates and token savings.",
        f"in the branching conversation {share(rate)} of the input is read, and {share(saved)} of its cost saved",
        short.how,
        "right under a condition: both are reported, as a hit rate is not a saving",
        {"hit_rate": rate, "saved": saved},
    )


def _budget() -> Claim:
    plain = claim_scenario("rfc013-long")
    more = plain.cost("rfc013-budget") - plain.cost("rfc013-as-written")
    return Claim(
        "rfc013.budget",
        "Later (7): no breakpoint on tools or a system prompt below 1,024 tokens.",
        f"{usd(more)} more ({share(more / plain.cost('rfc013-as-written'))}) with 600 and 700 tokens of them",
        plain.how,
        "wrong reason: the minimum counts the whole prefix, and a breakpoint costs nothing",
        {"more": more},
    )


def _children() -> Claim:
    own = claim_scenario("rfc013-children")
    plain, fork, apart = (
        own.cost(name) for name in ("without a fork point", "with a fork point", "children that share nothing")
    )
    return Claim(
        "rfc013.children",
        "Later (3): each process keeps a breakpoint at its latest fork.",
        f"three children that run at once: {usd(plain)} without it, {usd(fork)} with it; {usd(apart)} if "
        "they share nothing",
        own.how,
        f"right under a condition: what saves is to share the prefix ({share(1 - plain / apart, 0)}), the "
        "breakpoint adds "
        f"{share(1 - fork / plain)}",
        {"plain": plain, "fork": fork, "apart": apart},
    )


def _versus(key: str, says: str, strategy: str, short: ClaimScenario, long: ClaimScenario) -> Claim:
    quick, slow = (_saved(part, strategy) for part in (short, long))
    written = _saved(long, "rfc013-as-written")
    return Claim(
        f"rfc013.{key}",
        says,
        f"{usd(quick)} in short turns, {usd(slow)} in long ones; the branching point saves {usd(written)} there",
        _both(short),
        f"right: it saves, {'more' if slow > written else 'less'} than the branching point (a fork shows "
        "only after it)",
        {"saved_short": quick, "saved_long": slow},
    )


def _both(short: ClaimScenario) -> str:
    return f"{short.how}; `--set conversation.synthetic.pauses.loop=80`"


def _saved(part: ClaimScenario, strategy: str) -> Decimal:
    return part.cost(PLAIN) - part.cost(strategy)


def _input_share(part: ClaimScenario) -> Decimal:
    """What the input costs as a share of what it would cost uncached."""
    ledger = part.ledger("rfc013-as-written")
    cost = ledger.cost
    return (cost.input + cost.read + cost.write_5m) / part.usd(input=ledger.usage.total_input)
