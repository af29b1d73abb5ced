"""What a request makes use of, by the names that summaries group by."""

from __future__ import annotations

from cachecost.prompts.output_format import output_format
from cachecost.prompts.request import Request


def features_of(request: Request, passes: int = 1) -> tuple[str, ...]:
    """Names of the features in a request, sorted."""
    params = request.params
    ttls = {breakpoint.ttl for breakpoint in request.breakpoints} | (
        {request.automatic} if request.automatic else set()
    )
    choice = (params.get("tool_choice") or {}).get("type")
    told = {
        "automatic": request.automatic is not None,
        "explicit breakpoints": bool(request.breakpoints),
        "no breakpoints": not request.breakpoints and request.automatic is None,
        "1h": "1h" in ttls,
        "mixed TTLs": len(ttls) == 2,
        "tools": bool(request.tools.blocks),
        "forced tool choice": choice in ("any", "tool"),
        "thinking": (params.get("thinking") or {}).get("type") in ("enabled", "adaptive"),
        "structured output": bool(output_format(params)),
        "images": request.thread.has_image,
        "citations": request.thread.has_citations,
        "server tools": passes > 1,
    }
    return tuple(sorted(name for name, holds in told.items() if holds))
