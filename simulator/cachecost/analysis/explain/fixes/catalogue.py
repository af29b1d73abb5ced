"""The fix of each cause: a row a cause, as `codes.toml` names them."""

from __future__ import annotations

from collections.abc import Mapping

from cachecost.analysis.explain.fixes.breakpoints import (
    lengthen_prefix,
    place_breakpoints,
    place_missing_breakpoints,
    place_where_prompts_part,
)
from cachecost.analysis.explain.fixes.fix import Fixer
from cachecost.analysis.explain.fixes.parameters import (
    CHOICE,
    EFFORT,
    FORMAT,
    MODEL,
    PLACE,
    SPEED,
    STAY_ON,
    THINKING,
    image_from_the_start,
    same_parameter,
)
from cachecost.analysis.explain.fixes.prompts import no_compaction, same_messages, same_system, same_tools
from cachecost.analysis.explain.fixes.scopes import in_kind, in_static_prefix
from cachecost.analysis.explain.fixes.times import outlast_pauses, shorten_hours, wait_for_first_token
from cachecost.analysis.explain.fixes.writes import write_less
from cachecost.caches.causes import Cause

FIXERS: Mapping[Cause, Fixer] = {
    "model_changed": Fixer(same_parameter(MODEL, keeps_prices=True, words=STAY_ON)),
    "unknown": Fixer(same_parameter(PLACE, keeps_prices=True)),
    "speed_changed": Fixer(same_parameter(SPEED, keeps_prices=True)),
    "tools_changed": Fixer(same_tools),
    "system_changed": Fixer(same_system),
    "content_changed": Fixer(same_messages),
    "compaction": Fixer(no_compaction),
    "fork": Fixer(place_breakpoints, tries=1),
    "tool_choice_changed": Fixer(same_parameter(CHOICE)),
    "output_format_changed": Fixer(same_parameter(FORMAT)),
    "thinking_changed": Fixer(same_parameter(THINKING)),
    "thinking_stripped": Fixer(place_where_prompts_part, tries=1),
    "effort_changed": Fixer(same_parameter(EFFORT)),
    "images_changed": Fixer(image_from_the_start),
    "ttl_expired": Fixer(outlast_pauses, in_kind, tries=5),
    "concurrent_write": Fixer(wait_for_first_token, tries=1),
    "hour_unused": Fixer(shorten_hours, in_kind),
    "lookback_exceeded": Fixer(place_breakpoints, tries=1),
    "breakpoint_misplaced": Fixer(place_breakpoints, tries=1),
    "no_breakpoint": Fixer(place_missing_breakpoints),
    "below_minimum": Fixer(lengthen_prefix, in_static_prefix),
    "written_never_read": Fixer(write_less, in_kind),
}
