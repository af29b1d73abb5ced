"""What `cachecost whatif` prints for people: the answer, a line per alternative, then what is assumed and how sure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from math import ceil
from typing import IO, Any

from cachecost.analysis.whatif.results import (
    NO_CHANGE,
    NOT_EVALUATED,
    NOT_SUPPORTED,
    YES,
    Action,
    Alternative,
    Combination,
    TTLBreakEven,
    WhatifReport,
)
from cachecost.base.formatting import (
    all_of,
    change,
    change_text,
    count_text,
    dollar_change,
    dollar_column,
    dollar_places,
    dollar_range,
    dollars,
    duration,
    exact,
    margin_text,
    percent,
    percent_column,
    point_aligned,
    rough_dollars,
    short_session,
    tokens,
)
from cachecost.base.structs import replace
from cachecost.providers.usage import ZERO
from cachecost.views.bound_units import see_also
from cachecost.views.streams import print_lines, report_console
from cachecost.views.tables.output import pick, pick_usd
from cachecost.views.tables.table import (
    COMPARISON,
    COUNT,
    GAP,
    PIPE_WIDTH,
    Column,
    Table,
    fit_table,
    hidden_note,
    render_table,
)

MOST_ALTERNATIVES = 3
MOST_LINES = 10
NARROWEST_PROSE = 30
"""Cells that the column “what it does” needs to be shown."""


def headline(whatif: WhatifReport) -> Iterator[str]:
    """What it cost, and the best single change: one that keeps the answers, then one that may not."""
    yield f"{whatif.name}   {count_text(whatif.calls, 'call')} · {cost_words(whatif)}"
    kept = best(whatif, keeps_answers=True)
    other = best(whatif, keeps_answers=False)
    if kept is None:
        yield "No single change that keeps the answers saves anything that these data support."
    else:
        yield f"The best single change: {kept.name} saves {_saving_words(kept)}: {kept.does}.{_tie(whatif, kept)}"
    if other is not None:
        yield f"With other answers: {other.name} saves {_saving_words(other)}: {other.does}.{_tie(whatif, other)}"


def best(whatif: WhatifReport, keeps_answers: bool) -> Alternative | None:
    """The supported alternative that saves most; None: none saves."""
    return next((one for one in whatif.alternatives if one.is_gain and one.keeps_answers is keeps_answers), None)


def _tie(whatif: WhatifReport, best: Alternative) -> str:
    """What saves exactly as much as the best of its kind."""
    equal = [
        one.name
        for one in whatif.alternatives
        if one is not best and one.is_gain and (one.saving, one.keeps_answers) == (best.saving, best.keeps_answers)
    ]
    return f" {all_of(equal)} {'saves' if len(equal) == 1 else 'save'} the same." if equal else ""


def _saving_words(one: Alternative) -> str:
    share = f" ({percent(one.share)})" if one.share is not None else ""
    return f"{dollars(one.saving)}{share}"


def cost_words(whatif: WhatifReport) -> str:
    """What it cost: billed and simulated, and how far they are apart."""
    if whatif.billed is None:
        return f"{dollars(whatif.cost)} simulated"
    off = change(whatif.simulated, whatif.billed)
    apart = f", {percent(off, signed=True)}" if off else ""
    what = "only differences are simulated" if whatif.cost == whatif.billed else "too far off to rely on"
    if whatif.held_losses:
        losses = "1 unexplained loss" if whatif.held_losses == 1 else f"{whatif.held_losses:,} unexplained losses"
        what += f"; {losses} held in every alternative"
    return (
        f"{dollars(whatif.billed)} billed; {dollars(whatif.simulated)} simulated "
        f"({dollar_change(whatif.simulated - whatif.billed)}{apart}), {what}"
    )


def joint_lines(joint: Combination, cost: Decimal, is_asked: bool = False) -> Iterator[str]:
    names = " + ".join(joint.names)
    if joint.cost is None or joint.saving is None:
        yield f"Together {names}: {joint.supported or NOT_EVALUATED}"
        return
    share = f" ({percent(joint.saving / cost)})" if cost else ""
    verb = "save" if len(joint.names) > 1 else "saves"
    start = "As asked, together" if is_asked else "Together"
    if len(joint.names) == 1 and not is_asked:
        yield f"No combination saves more than {names} alone, of those that keep the answers."
        return
    amount = f"{verb} {dollars(joint.saving)}" if joint.saving >= ZERO else f"cost {dollars(-joint.saving)} more"
    yield f"{start}: {names} {amount}{share}; the parts alone would add up to {dollars(joint.sum_of_parts)}."
    if joint.why:
        yield f"That is less than the best of them alone ({dollars(joint.best_part)}): {joint.why}."
    if joint.supported != YES:
        yield joint.supported


def action_answer(action: Action) -> str:
    """What an action costs at the next call, and when it pays off, in a line."""
    price = dollars(abs(action.price))
    more = f"{price} {'more' if action.price > 0 else 'less'}" if action.price else "the same"
    costs = f"{dollars(action.cost)} instead of {dollars(action.cost_without)}"
    lost = f"; {tokens(action.lost)} tokens are not read" if action.lost else ""
    where = f"after call {action.at}{_session(action)}"
    pays_off = "it does not pay for itself"
    if action.pays_after is not None:
        after = f"paid off after {count_text(action.pays_after, 'call')}"
        pays_off = "it pays at once" if action.pays_after == 1 else after
    return f"{action.name} {where}: the next call costs {more} ({costs}{lost}); {pays_off}"


def action_lines(action: Action) -> Iterator[str]:
    """The price of an action, and whether it ever pays."""
    yield (
        f"The price of {action.name} after call {action.at}{_session(action)}: {dollars(action.price)}. "
        f"The next call costs {dollars(action.cost)} instead of "
        f"{dollars(action.cost_without)}: {tokens(action.lost)} tokens are not read."
    )
    later = f"{dollars(action.then)} instead of {dollars(action.then_without)}"
    if action.pays_after is None:
        yield f"  It does not pay for itself; the call after that costs {later}."
    elif action.pays_after == 1:
        yield f"  It pays at once; the call after that costs {later}."
    else:
        yield f"  It has paid for itself after {count_text(action.pays_after, 'call')}; the second costs {later}."
    yield f"  assumed: {action.assumption}"


def break_even_lines(edge: TTLBreakEven) -> Iterator[str]:
    short, middle, long = edge.pauses
    yield (
        f"pauses   {short:,} under 5 min, {middle:,} of 5–60 min, {long:,} of an hour and more; "
        f"the longest {duration(edge.longest_s)}"
    )
    here = f"; here {edge.here:.2f}" if edge.here is not None else ""
    yield (
        f"TTL      1h breaks even on {edge.model} at {edge.needed:.3f} rewritten tokens per new token "
        f"in pauses of 5–60 min{here}"
    )
    if edge.needed_pauses is not None:
        an_hour = edge.needed_an_hour
        rate = f", {an_hour:.1f} an hour" if an_hour is not None else ""
        needed = count_text(ceil(edge.needed_pauses), "such pause")
        yield f"         1h TTL breaks even at {needed}{rate}; you have {middle:,}"
    if edge.pings is not None:
        yield f"         keep-alives pay for a pause that takes at most {edge.pings:,} of them"


def _session(action: Action) -> str:
    return f" (session {short_session(action.session)})" if action.session else ""


def whatif_object(whatif: WhatifReport) -> dict[str, Any]:
    edge = whatif.break_even
    made: dict[str, Any] = {
        "format": 1,
        "calls": whatif.calls,
        **pick_usd(whatif, "cost", "simulated"),
        "alternatives": [
            {
                **pick(one, "name", "kind", "does"),
                **pick_usd(one, "cost", "most", "saving"),
                "share": _float(one.share),
                **pick(one, "calls_changed", "extra_calls"),
                "error_usd": exact(one.error),
                **pick(one, "keeps_answers", "who", "assumption", "supported"),
                "depends_on": list(one.depends_on),
            }
            for one in whatif.alternatives
        ],
        "jointly": whatif.jointly and _jointly(whatif.jointly),
        "break_even": edge
        and {
            "model": edge.model,
            "rewritten_per_new_token": float(edge.needed),
            "rewritten_per_new_token_here": _float(edge.here),
            "pauses_needed": _float(edge.needed_pauses),
            "pauses_needed_an_hour": _float(edge.needed_an_hour),
            "pauses": dict(zip(("under_5m", "5m_to_1h", "from_1h"), edge.pauses, strict=True)),
            "longest_pause_s": edge.longest_s,
            "pings_worth": edge.pings,
        },
        "tokens": {"source": whatif.token_source, "error_margin": whatif.error_margin},
        "retired_models": {name: day.isoformat() for name, day in whatif.retired_models.items()},
        "assumptions": {"asked": whatif.has_tried_assumptions, "other": list(whatif.assumptions)},
    }
    if whatif.billed is not None:
        made["billed_usd"] = exact(whatif.billed)
    if whatif.asked:
        made["asked"] = _jointly(whatif.asked)
    if whatif.actions:
        made["actions"] = [
            {
                **pick(one, "name", "at"),
                **pick_usd(one, "price", "cost", "cost_without"),
                "tokens_lost": one.lost,
                **pick_usd(one, "then", "then_without"),
                **pick(one, "pays_after", "assumption", "session", "file", "line"),
            }
            for one in whatif.actions
        ]
    return made


def _float(number: Decimal | float | None) -> float | None:
    return None if number is None else float(number)


def _jointly(joint: Combination) -> dict[str, Any]:
    return {
        "names": list(joint.names),
        **pick_usd(joint, "cost", "saving", "sum_of_parts", "best_part"),
        **pick(joint, "why", "supported"),
    }


def print_brief(whatif: WhatifReport, arguments: str, stream: IO[str]) -> None:
    """Print the answer, what was asked for or what else saves, how sure that is, and what to type next."""
    below = [f"{whatif.name}   {count_text(whatif.calls, 'call')} · {cost_words(whatif)}"]
    if whatif.asked:
        below += joint_lines(whatif.asked, whatif.cost, is_asked=True)
    if whatif.actions:
        below.append(f"assumed    {whatif.actions[0].assumption}{'; more in --full' * (len(whatif.actions) > 1)}")
    elif not whatif.asked:
        below += _other_gains(whatif)
    number = f"all {len(whatif.alternatives)} alternatives, and what is assumed"
    known = {"explain": f"why it costs {dollars(whatif.cost)}", "optimize": "cheapest plan, the lower bound"}
    below += [
        f"accuracy   {_token_words(whatif) if whatif.actions else _certainty(whatif)}",
        f"next       cachecost whatif {arguments} --full: {number}",
        see_also("whatif", arguments, known),
    ]
    if whatif.actions:
        room = MOST_LINES - len(below)
        shown = len(whatif.actions) if len(whatif.actions) <= room else room - 1
        rest = len(whatif.actions) - shown
        more = [f"… and {count_text(rest, 'more action')}: --full"] if rest else []
        lines = [*map(action_answer, whatif.actions[:shown]), *more]
    elif one := best(whatif, keeps_answers=True):
        lines = [f"{dollars(whatif.cost)} now · {_saving(one)}: {one.does}"]
    else:
        why = "no single change that keeps the answers saves anything that these data support"
        lines = [f"{dollars(whatif.cost)} now; {why}"]
    print_lines(report_console(stream, PIPE_WIDTH), [*lines, *below])


def _saving(one: Alternative) -> str:
    return f"{one.name} {dollars(one.cost)}{_less(one.share)}"


def _less(share: Decimal | None) -> str:
    return f", {change_text(-share)}" if share is not None else ""


def _other_gains(whatif: WhatifReport) -> Iterator[str]:
    first = best(whatif, keeps_answers=True)
    more = [one for one in whatif.alternatives if one.is_gain and one.keeps_answers and one is not first]
    yield f"cheaper    {' · '.join(map(_saving, more[:MOST_ALTERNATIVES])) or 'nothing else that keeps the answers'}"
    joint = whatif.jointly
    if joint and joint.saving is not None and len(joint.names) > 1:
        share = joint.saving / whatif.cost if whatif.cost else None
        yield f"together   {' + '.join(joint.names)} {dollars(joint.cost)}{_less(share)}"
    if other := best(whatif, keeps_answers=False):
        yield f"trade-off  {_saving(other)}, with other answers: {other.does}"
    edge = whatif.break_even
    if edge and edge.needed_pauses is not None:
        needed = count_text(ceil(edge.needed_pauses), "pause")
        yield f"1h TTL     breaks even at {needed} of 5–60 min; you have {edge.pauses[1]:,}"


def _certainty(whatif: WhatifReport) -> str:
    one = best(whatif, keeps_answers=True)
    tried = "open rules not tried (--assumptions)"
    if one and one.depends_on:
        tried = "depends on an open rule (--full)"
    elif whatif.has_tried_assumptions:
        tried = "holds under every tried assumption"
    return f"{_token_words(whatif, one)}; {tried}"


def _token_words(whatif: WhatifReport, best: Alternative | None = None) -> str:
    """Where the token counts come from, their error margin, and what that is on the best alternative."""
    on_best = f"→ ±{rough_dollars(best.error)} on {best.name}" if best and best.error else ""
    return " ".join(filter(None, (whatif.token_source, margin_text(whatif.error_margin), on_best)))


def print_whatif(whatif: WhatifReport, stream: IO[str]) -> None:
    console = report_console(stream, PIPE_WIDTH)
    print_lines(console, headline(whatif))
    if whatif.jointly:
        print_lines(console, joint_lines(whatif.jointly, whatif.cost))
    shown = [
        one
        for one in whatif.alternatives
        if one.saving is not None and not one.supported.startswith(NO_CHANGE) and not _costs_more(one)
    ]
    note = ""
    if shown:
        fitted = fit_table(_alternatives_table(shown), console.width)
        does, prose = [one.does for one in shown], None
        if fitted.room >= GAP + NARROWEST_PROSE:
            prose = ("what it does", does)
        losses = [number for number, one in enumerate(shown) if not one.is_gain]
        console.print()
        console.print(render_table(fitted, prose=prose, dim=losses))
        hidden = [] if prose else [Column("does", "what it does", [" " * NARROWEST_PROSE for _ in shown])]
        note = hidden_note([replace(fitted, hidden=[*fitted.hidden, *hidden])], "--csv F")
    for lines in (
        list(joint_lines(whatif.asked, whatif.cost, is_asked=True)) if whatif.asked else [],
        [line for action in whatif.actions for line in action_lines(action)],
        list(break_even_lines(whatif.break_even)) if whatif.break_even else [],
        list(_closing(whatif)),
    ):
        if lines:
            console.print()
            print_lines(console, lines)
    print_lines(console, filter(None, [note]))


def _costs_more(one: Alternative) -> bool:
    return one.kind == "model" and one.saving is not None and one.saving < 0


def _alternatives_table(alternatives: Sequence[Alternative]) -> Table:
    calls = [f"{one.calls_changed:,}" + (f" +{one.extra_calls:,}" if one.extra_calls else "") for one in alternatives]
    sure = ["no *" if one.supported != YES else "open rule" if one.depends_on else "yes" for one in alternatives]
    places = dollar_places(amount for one in alternatives for amount in (one.cost, one.saving, one.most))
    columns = [
        Column("name", "alternative", [one.name for one in alternatives], right=False),
        Column("cost", "cost", point_aligned([dollar_range(one.cost, one.most, places) for one in alternatives])),
        Column("saving", "saving", point_aligned([dollar_change(one.saving, places) for one in alternatives])),
        Column("share", "share", percent_column([one.share for one in alternatives], signed=True), rank=COMPARISON),
        Column("calls", "calls", calls, rank=COUNT),
        Column("sure", "sure?", sure, right=False),
    ]
    return Table(columns)


def _closing(whatif: WhatifReport) -> Iterator[str]:
    doubtful = [
        one for one in whatif.alternatives if one.saving is not None and one.supported.startswith(NOT_SUPPORTED)
    ]
    yield from (f"* {line}" for line in _by_verdict(doubtful))
    expensive = [one for one in whatif.alternatives if _costs_more(one)]
    if expensive:
        more = dollar_column([-(one.saving or ZERO) for one in expensive])
        models = (f"{one.name.partition('=')[2]} (+{extra})" for one, extra in zip(expensive, more, strict=True))
        yield f"more expensive models: {', '.join(models)}"
    if whatif.retired_models:
        retired = ", ".join(f"{name} (last day {day})" for name, day in whatif.retired_models.items())
        yield f"retired, so not suggested: {retired}; --as-of {whatif.day} prices them"
    yield from _by_verdict([one for one in whatif.alternatives if one.saving is None])
    yield from _by_verdict([one for one in whatif.alternatives if one.supported.startswith(NO_CHANGE)])
    for words in dict.fromkeys(one.assumption for one in whatif.alternatives if one.assumption and one.is_gain):
        names = ", ".join(one.name for one in whatif.alternatives if one.assumption == words and one.is_gain)
        yield f"assumed  {names}: {words}"
    yield "assumed  effort is unchanged: no recording shows what another effort would have answered"
    if whatif.token_source:
        best = next((one for one in whatif.alternatives if one.is_gain), None)
        yield f"tokens   {_token_words(whatif, best)}"
    for one in whatif.alternatives:
        yield from (f"depends  {one.name}: {words}" for words in one.depends_on)
    if not whatif.has_tried_assumptions:
        yield "rules    other assumptions on the open rules were not tried (try them with --assumptions)"
    elif whatif.assumptions and not any(one.depends_on for one in whatif.alternatives):
        tried = count_text(len(whatif.assumptions), "other assumption")
        yield f"rules    no verdict changes under {tried} on the open rules"


def _by_verdict(alternatives: Sequence[Alternative]) -> Iterator[str]:
    """A line for each verdict, with the alternatives that it is about."""
    for why in dict.fromkeys(one.supported for one in alternatives):
        yield f"{', '.join(one.name for one in alternatives if one.supported == why)}: {why}"
