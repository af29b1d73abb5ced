"""What is counted of a block: its texts, and the facts of its structure that cost tokens of their own.

Claude does not see the JSON that is sent. A tool definition is rendered as `<function>…</function>` with its
keys sorted (else bills of 7 to 24 tools are off by a token a tool), a call as its name, parameter names and
values, a result as its text. What stands around them is a constant for each *fact* (see `calibration.toml`):
one tool, one call, one parameter, one error, …
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from json import dumps
from typing import Any

from cachecost.prompts.blocks import THINKING, Block, compact
from cachecost.tokens.prose import kind_of

Content = Mapping[str, Any]
NO_FACTS: Mapping[str, int] = {}
SIGNATURE_OVERHEAD = 200
"""A thinking signature is 174 to 207 bytes longer than the reasoning in it, where all of that is shown."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The texts of a block, and its stored facts: `parameter` (how many), `error`, `unseen` (bytes of
    reasoning that only the signature holds), `guessed` (1: no rule for this kind, its JSON is counted)."""

    texts: tuple[str, ...]
    facts: Mapping[str, int] = field(default_factory=lambda: NO_FACTS)


STORED_FACTS = ("parameter", "error", "unseen", "guessed")
"""Facts that need the content; the others (`facts_of`) follow from a block's kind and role."""


def parts_of(kind: str, content: Content) -> Parts:
    """What is counted of `content`, a block of `kind`. Never fails: an unknown kind counts as its JSON."""
    return _READERS.get(kind, _as_json)(content)


def prose_of(kind: str, parts: Parts) -> str:
    """The content kind of a block: its tokenizer ratio is for that kind."""
    return "tools" if kind == "tool" else kind_of(parts.texts)


def facts_of(block: Block) -> dict[str, int]:
    """The facts that kind and role alone tell: how many tools, calls, results, … the block is."""
    if block.role == "system" and block.kind == "text":
        return {"system": 1}
    if block.kind in THINKING:
        return {"thinking": 1}
    return {block.kind: 1} if block.kind in ("tool", "tool_use", "tool_result") else {}


def well_formed(text: str) -> str:
    """`text` with lone surrogates replaced, so that every tokenizer takes it."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _text(content: Content) -> Parts:
    return Parts((str(content.get("text") or ""),))


def _tool(content: Content) -> Parts:
    if "input_schema" not in content:
        return _as_json(content)
    shown = {"description": content.get("description"), "name": content.get("name")}
    function = {key: value for key, value in shown.items() if value is not None}
    function["parameters"] = content["input_schema"]
    return Parts((f"<function>{dumps(function, ensure_ascii=False, sort_keys=True)}</function>\n",))


def _call(content: Content) -> Parts:
    given = content.get("input")
    arguments = given if isinstance(given, Mapping) else {"": given}
    texts = [str(content.get("name") or "")]
    for key, value in arguments.items():
        texts += [str(key), value if isinstance(value, str) else dumps(value, ensure_ascii=False)]
    return Parts(tuple(texts), _facts(parameter=len(arguments)))


def _result(content: Content) -> Parts:
    inner = content.get("content") or ""
    items = [{"type": "text", "text": inner}] if isinstance(inner, str) else inner
    parts = [parts_of(str(item.get("type")), item) for item in items if isinstance(item, Mapping)]
    guessed = any("guessed" in part.facts for part in parts)
    texts = tuple(text for part in parts for text in part.texts)
    return Parts(texts, _facts(error=int(content.get("is_error") is True), guessed=int(guessed)))


def _thinking(content: Content) -> Parts:
    """Billed is the full reasoning, which the signature holds; the text may be a summary, or left out."""
    text = str(content.get("thinking") or "")
    sealed = str(content.get("signature") or content.get("data") or "")
    held = len(sealed) * 3 // 4 - SIGNATURE_OVERHEAD
    return Parts((text,), _facts(unseen=max(0, held - len(text.encode("utf-8", "replace")))))


def _as_json(content: Content) -> Parts:
    return Parts((compact(_without_base64(content)).decode("utf-8", "replace"),), _facts(guessed=1))


def _without_base64(value: Any) -> Any:
    """`value` without file contents: an image costs what its size in pixels says, not its bytes."""
    if isinstance(value, Mapping):
        encoded = value.get("type") == "base64"
        return {key: _without_base64(inner) for key, inner in value.items() if not (encoded and key == "data")}
    return [_without_base64(inner) for inner in value] if isinstance(value, list) else value


def _facts(**facts: int) -> Mapping[str, int]:
    return {name: number for name, number in facts.items() if number}


_READERS: Mapping[str, Callable[[Content], Parts]] = {
    "text": _text,
    "tool": _tool,
    "tool_use": _call,
    "server_tool_use": _call,
    "tool_result": _result,
    "thinking": _thinking,
    "redacted_thinking": _thinking,
}
