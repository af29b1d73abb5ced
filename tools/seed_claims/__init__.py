"""What the five source documents claim, beside computed figures: the page docs/explanation/seeds.md."""

from __future__ import annotations

from collections import Counter

from tools.seed_claims import progressive, rfc013, rfd033, structured, text_tools
from tools.seed_claims.claim import VERDICTS, Claim, Document

INTRODUCTION = """# What five documents claim about caching, computed

cachecost began with five documents about the cost of agents: a design for questions to an assistant (RFD 033 of \
dcdpr/jp), two for placing breakpoints (Progressive Prompt Caching, RFC013), one for structured answers and one for \
tools as text. This page takes each of their claims that a number can decide, in our words. {summary}

Each figure comes from a small scenario in `scenarios/seed-claims/`, which `cachecost run` repeats, from a log of \
requests that the named command writes for `cachecost replay --tokens bytes`, or from the prices alone. \
`tests/seed_claims/test_seed_claims.py` recomputes each by plain arithmetic. The sizes are those of the documents \
where they give any, else they are assumed and the scenario states them; hidden tokens are left out, so that every \
number can be checked by hand. `--set` names what differs from the scenario as written.

What the first design costs in its author's own session, and which way of asking is the cheapest there: [the \
report](../../reports/answer-inquiry/report.md). Which strategy models which document: \
[agents](../reference/agents.md).

"""


def documents() -> list[Document]:
    return [module.document() for module in (rfd033, progressive, rfc013, structured, text_tools)]


def page() -> str:
    """The page, in Markdown."""
    found = documents()
    counts = Counter(claim.kind for document in found for claim in document.claims)
    numbers = ", ".join(f"{counts[kind]} are {kind}" for kind in ("right", VERDICTS[0], "wrong"))
    summary = f"Of {counts.total()} claims {numbers}."
    return INTRODUCTION.format(summary=summary) + "\n".join(document.text() for document in found)


def claims() -> dict[str, Claim]:
    """Every claim by its key."""
    return {claim.key: claim for document in documents() for claim in document.claims}
