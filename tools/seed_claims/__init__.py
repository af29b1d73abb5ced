"""What the five source documents claim, beside computed figures: a section of docs/reference/agents.md."""

from __future__ import annotations

from tools.seed_claims import progressive, rfc013, rfd033, structured, text_tools
from tools.seed_claims.claim import Claim, Document


def documents() -> list[Document]:
    return [module.document() for module in (rfd033, progressive, rfc013, structured, text_tools)]


def section() -> str:
    """The tables of all documents, in Markdown."""
    return "\n".join(document.text() for document in documents())


def claims() -> dict[str, Claim]:
    """Every claim by its key."""
    return {claim.key: claim for document in documents() for claim in document.claims}
