"""No breakpoints on what no other call sends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cachecost.analysis.explain.fixes.conversations import in_scopes, replaced
from cachecost.analysis.explain.fixes.fix import Fix, FixContext
from cachecost.analysis.explain.fixes.scopes import conversation_of
from cachecost.analysis.replays.steps import ReplayStep
from cachecost.base.structs import replace
from cachecost.caches.losses import Loss
from cachecost.prompts.blocks import Layer
from cachecost.prompts.request import Request


def write_less(context: FixContext, losses: Sequence[Loss]) -> Iterator[Fix]:
    """First calls of these kinds of conversations without breakpoints on messages, or without any.

    Which of them will go on is not known when they are sent, so those that did pay for it.
    """
    first: dict[object, ReplayStep] = {}
    for step in in_scopes(context, losses):
        first.setdefault(conversation_of(step.call), step)
    for keeps_static in (True, False):
        fixed = [step.with_request(_without(step.call.request, keeps_static)) for step in first.values()]
        yield Fix(replaced(context.steps, fixed))


def _without(request: Request, keeps_static: bool) -> Request:
    kept = tuple(one for one in request.breakpoints if keeps_static and one.layer is not Layer.MESSAGES)
    return replace(request, breakpoints=kept, automatic=None)
