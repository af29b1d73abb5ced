"""The conversations that losses are in, and the blocks that their prompts consist of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from cachecost.analysis.explain.fixes.fix import FixContext
from cachecost.analysis.explain.fixes.scopes import Conversation, ScopeOf, in_kind, static_prefix_of
from cachecost.analysis.explain.fixes.versions import CountBlock
from cachecost.analysis.replays.steps import NO_CALL, ReplayStep
from cachecost.caches.losses import Loss
from cachecost.conversations.calls import Call


def with_losses(context: FixContext, losses: Iterable[Loss]) -> dict[Conversation, list[ReplayStep]]:
    """The calls of each conversation that has one of the losses, in order; extra calls are left out.

    Where a loss is due to another conversation, all with the static prefix of either belong to them: what they wrote
    for one another would be missing, if only some were sent otherwise.
    """
    conversation_of = context.observed.conversations.of
    steps = [step for step in context.steps if step.number != NO_CALL]
    found: dict[Conversation, list[ReplayStep]] = {}
    apart = set[Conversation]()
    for loss in losses:
        conversation = conversation_of(context.observed.call(loss.call))
        found[conversation] = []
        apart |= {conversation} if loss.is_apart else set()
    placed = {conversation: conversation for conversation in found}
    if apart:
        sent = [(conversation_of(step.call), static_prefix_of(step.call)) for step in steps]
        owners = {prefix: conversation for conversation, prefix in reversed(sent) if conversation in apart}
        placed = {one: owners[prefix] for one, prefix in sent if prefix in owners} | placed
    for step in steps:
        if (owner := placed.get(conversation_of(step.call))) is not None:
            found[owner].append(step)
    return found


def in_scopes(context: FixContext, losses: Iterable[Loss], scope_of: ScopeOf = in_kind) -> list[ReplayStep]:
    """The calls that have their scope in common with one of the losses; extra calls are left out."""
    scope = partial(scope_of, context.observed.conversations)
    scopes = {scope(context.observed.call(loss.call)) for loss in losses}
    return [step for step in context.steps if step.number != NO_CALL and scope(step.call) in scopes]


def replaced(steps: Sequence[ReplayStep], changed: Iterable[ReplayStep]) -> list[ReplayStep]:
    """The steps, with the changed ones in the place of those with their numbers."""
    known = {step.number: step for step in changed}
    return [known.get(step.number, step) if step.number != NO_CALL else step for step in steps]


def block_counter(context: FixContext, call: Call) -> CountBlock:
    """Counts blocks as the model of a call does. Raises CannotEvaluate."""
    setup = context.replays.traffic.setup
    return setup.counter(setup.rules_for(call).generation).block
