"""Parameters that differ between a request and the one after it, and what that invalidates (rule 2)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from cachecost.analysis.lint.finding import LintFinding
from cachecost.analysis.lint.loaded_request import LoadedRequest
from cachecost.prompts.cache_keys import cache_keys_of

PARAMETERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "CC542": (("speed",),),
    "CC545": (("output_config", "format"), ("output_format",)),
    "CC546": (("container", "skills"),),
    "CC547": (("output_config", "task_budget"),),
    "CC548": (("tool_choice",),),
    "CC549": (("thinking",),),
    "CC550": (("output_config", "effort"),),
}
"""The paths of a body that a code is about. The cache keys say which layer they change."""
LONGEST = 40
LOST = (
    "tools, system and messages are written again",
    "system and messages are written again",
    "messages are written again",
)


def check_parameters(a: LoadedRequest, b: LoadedRequest) -> Iterator[LintFinding]:
    """A finding for each parameter whose change loses what `a` wrote."""
    if a.rules.model != b.rules.model:
        yield from _finding(a, "CC541", "model", 0, b.rules.model, a.rules.model)
    for code, paths in PARAMETERS.items():
        yield from _compare(a, b, code, paths)
    yield from _seen_in_blocks(a, b)


def _compare(
    a: LoadedRequest, b: LoadedRequest, code: str, paths: tuple[tuple[str, ...], ...]
) -> Iterator[LintFinding]:
    """`a` with this parameter as `b` has it: does a cache key change?"""
    params = dict(a.request.params)
    for path in paths:
        params = _put(params, path, _get(b.request.params, path))
    before = cache_keys_of(a.request, a.rules)
    after = cache_keys_of(replace(a.request, params=params), a.rules)
    layer = next((number for number, (one, other) in enumerate(zip(before, after, strict=True)) if one != other), None)
    if layer is not None:
        path = next(path for path in paths if _get(a.request.params, path) != _get(b.request.params, path))
        now, was = (_get(one.request.params, path) for one in (b, a))
        yield from _finding(a, code, ".".join(path), layer, _value_text(now), _value_text(was))


def _seen_in_blocks(a: LoadedRequest, b: LoadedRequest) -> Iterator[LintFinding]:
    """What no parameter says: web tools, citations, images."""
    one, other = a.request, b.request
    web = [[block.digest for block in each.system.blocks if not block.role] for each in (one, other)]
    if web[0] != web[1]:
        yield from _finding(a, "CC543", "tools", 1, _count(len(web[1])), _count(len(web[0])))
    cites = [each.thread.has_citations or each.system.has_citations for each in (one, other)]
    if cites[0] != cites[1]:
        yield from _finding(a, "CC544", "citations", 1, _switch(cites[1]), _switch(cites[0]))
    if one.thread.has_image != other.thread.has_image:
        yield from _finding(a, "CC551", "messages", 2, _some(other.thread.has_image), _some(one.thread.has_image))


def _finding(a: LoadedRequest, code: str, path: str, layer: int, now: str, was: str) -> Iterator[LintFinding]:
    """Nothing is lost where no breakpoint of `a` stands in that layer or after it."""
    if not a.reaches((layer, 0, 0)):
        return
    differ = f"{now}, before {was}" if now != was else "changed"
    yield LintFinding(
        code, path, f"{differ}: {LOST[layer]}", a.live[-1].tokens - a.start_of(layer) if a.sized else None
    )


def _get(params: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = params
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _put(params: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """`params` with `value` at `path`."""
    name, *rest = path
    if not rest:
        return {**params, name: value}
    inner = params.get(name)
    return {**params, name: _put(dict(inner) if isinstance(inner, Mapping) else {}, tuple(rest), value)}


def _value_text(value: Any) -> str:
    """A value as the request has it, cut where it is long."""
    if value is None:
        return "not set"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _count(tools: int) -> str:
    return f"{tools} web tool{'' if tools == 1 else 's'}"


def _switch(on: bool) -> str:
    return "on" if on else "off"


def _some(present: bool) -> str:
    return "some image" if present else "no image"
