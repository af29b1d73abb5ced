"""What can be chosen for a session, and what it would have cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cachecost.analysis.viewing.what_if import AS_SENT, KINDS, ReplayedAlternative, SessionAlternatives
from cachecost.analysis.whatif.pauses import pings_worth
from cachecost.analysis.whatif.presets import list_placing_presets
from cachecost.base.formatting import capitalized, exact
from cachecost.providers.usage import Usage
from cachecost.views.viewer.columns import NameList, cause_objects, simulated_columns
from cachecost.views.viewer.recipes import OWN_BREAKPOINTS, ScenarioFacts, command_line, scenario_yaml

LISTS = {"ttl": "ttl", "model": "models", "host": "hosts", "keep_alive": "keep_alive", "compaction": "compaction"}
"""The list of each kind but breakpoints, which have words too."""


def options_object(alternatives: SessionAlternatives) -> dict[str, Any]:
    """The values of each choice; the first is as sent."""
    made: dict[str, Any] = {name: [AS_SENT, *alternatives.values(kind)] for kind, name in LISTS.items()}
    return made | {"breakpoints": list(_breakpoints(alternatives))}


def _breakpoints(alternatives: SessionAlternatives) -> Iterator[dict[str, str]]:
    yield {"name": AS_SENT, "words": "the breakpoints that were sent"}
    for value in alternatives.values("breakpoints"):
        yield {"name": value, "words": alternatives.known[f"breakpoints={value}"].does}
    for preset in list_placing_presets():
        if preset.name not in OWN_BREAKPOINTS:
            yield {"name": preset.name, "words": preset.what}


def what_if_object(
    alternatives: SessionAlternatives, found: ReplayedAlternative, choices: Mapping[str, str], options: Sequence[str]
) -> dict[str, Any]:
    """The session with these choices; `options` are those of the command that shows the page."""
    replay, profile, causes = alternatives.replay, alternatives.profile, NameList()
    chosen = {kind: value for kind, value in choices.items() if value not in ("", AS_SENT) and kind in KINDS}
    difference = found.cost - found.basis
    main = profile.main
    facts = ScenarioFacts(
        main.host if main else sorted(replay.workload.hosts)[0],
        main.rules.model if main else replay.session.calls[0].call.model,
        (pings_worth(profile.prices) if profile.prices else None) or 0,
    )
    return {
        "cost_usd": exact(found.cost),
        "basis_usd": exact(found.basis),
        "difference_usd": exact(difference),
        "basis": _basis(found),
        "words": _words(found),
        "extra_calls": found.extra_calls,
        "calls": _columns(found, causes),
        "causes": cause_objects(causes),
        "command": command_line(replay, chosen, options),
        "yaml": scenario_yaml(replay, chosen, facts),
        "errors": list(dict.fromkeys(one.made.row.error for one in found.calls if one.made.row.error)),
    }


def _basis(found: ReplayedAlternative) -> dict[str, int]:
    """The tokens of the session as sent by class, and its calls."""
    usage = sum((row.usage for row in found.base), Usage())
    tokens = {"read": usage.read, "write_1h": usage.write_1h, "write_5m": usage.write_5m, "input": usage.input_tokens}
    return {**tokens, "output": usage.output_tokens, "calls": len(found.base)}


def _columns(found: ReplayedAlternative, causes: NameList) -> dict[str, Any]:
    """The columns, in the order of time; an extra call has the number 0."""
    made = [one.made for one in found.calls]
    return {
        "number": [one.number for one in found.calls],
        "start": [one.call.start if one.call.timestamp is not None else None for one in found.calls],
        **simulated_columns(made, causes),
        "output": [one.row.usage.output_tokens for one in made],
    }


def _words(found: ReplayedAlternative) -> str:
    """What the choices do, and what is assumed or not known."""
    options = found.options
    if not options:
        return "As sent."
    does = "; ".join(option.does for option in options)
    sentences = [capitalized(does)]
    sentences += dict.fromkeys(one.assumption for one in options if one.assumption)
    sentences += dict.fromkeys(f"Not supported by the data: {one.unsupported}" for one in options if one.unsupported)
    sentences += dict.fromkeys(f"{one.name}: {one.unchanged}" for one in options if one.unchanged)
    return " ".join(f"{one.rstrip('.')}." for one in sentences)
