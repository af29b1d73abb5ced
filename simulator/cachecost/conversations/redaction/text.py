"""Secrets in texts and JSON values, and what stands in their place.

A placeholder is KEY7…, MAIL7… or NAME7…, numbered in the order of finding and as long as what it stands for, in
bytes of JSON: sizes stay. One that must be too short for that is n07, as long as it can be. Equal secrets have one
placeholder, different secrets have different ones, and none tells anything of its secret but the length.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from hashlib import shake_256
from typing import Any

from cachecost.conversations.redaction.keys import Span, is_secret_of, keys_in
from cachecost.conversations.redaction.mail import e_mails_in
from cachecost.conversations.redaction.names import Names
from cachecost.prompts.blocks import COMPACT

KEYS, MAILS, NAMES = "keys", "e-mail addresses", "names"
WORDS = {KEYS: "KEY", MAILS: "MAIL", NAMES: "NAME"}
"""Kinds of secrets, the gravest first: what overlaps is hidden as one secret of the first kind."""
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

SEALED = frozenset({"type", "media_type", "signature", "thoughtSignature", "thought_signature"})
"""Fields of a block that are no text: changed they would be worth nothing, and they tell nothing that can be read."""
FILES = frozenset({"base64", "redacted_thinking"})
"""Types of objects whose `data` is no text."""
ENCODED = re.compile(r"[\w+/=.:;\s-]*")
DATA_URL = re.compile(r"data:[^,\s]{0,100};base64,[\w+/=-]*")
TextChange = Callable[[str, str], str]
"""(name of the field that holds it, text) -> text."""


def rewrite_texts(value: Any, change: TextChange, name: str = "", is_input: bool = False) -> Any:
    """A JSON value with its texts changed, payloads left out. Keys change only within the input of a tool call."""
    if isinstance(value, str):
        return value if value.startswith("data:") and DATA_URL.fullmatch(value) else change(name, value)
    if isinstance(value, Mapping):
        return dict(_members(value, change, is_input))
    if isinstance(value, list):
        return [rewrite_texts(inner, change, name, is_input) for inner in value]
    return value


def _members(value: Mapping[str, Any], change: TextChange, is_input: bool) -> Iterator[tuple[str, Any]]:
    if is_input:
        yield from ((change("", key), rewrite_texts(inner, change, key, True)) for key, inner in value.items())
        return
    type_ = str(value.get("type"))
    for key, inner in value.items():
        sealed = key in SEALED or key.startswith("encrypted_") or (key == "data" and type_ in FILES)
        is_call = key == "input" and type_.endswith("tool_use")
        stays = sealed and isinstance(inner, str) and ENCODED.fullmatch(inner)
        yield key, inner if stays else rewrite_texts(inner, change, key, is_call)


class SecretHider:
    """Hides secrets; `counts` says how many were hidden, by kind. Names are those in `names`."""

    def __init__(self, names: Names) -> None:
        self.counts: Counter[str] = Counter()
        self._names = names
        self._placeholders: dict[str, str] = {}
        self._distinct: Counter[str] = Counter()

    def value(self, value: Any) -> Any:
        """A JSON value without secrets."""
        return rewrite_texts(value, self.field)

    def field(self, name: str, text: str) -> str:
        """A text that stands in the field `name`."""
        return self._hide(KEYS, text) if is_secret_of(name, text) else self.text(text)

    def text(self, text: str) -> str:
        """A text without secrets."""
        parts: list[str] = []
        end = 0
        for (start, stop), kind in self._find(text):
            parts += [text[end:start], self._hide(kind, text[start:stop])]
            end = stop
        return "".join([*parts, text[end:]]) if parts else text

    def _find(self, text: str) -> list[tuple[Span, str]]:
        """Where secrets stand, in order; what overlaps is one."""
        spans = [(span, KEYS) for span in keys_in(text)]
        spans += [((mail.start, mail.end), MAILS) for mail in e_mails_in(text)]
        spans += [(span, NAMES) for span in self._names.spans(text)]
        spans_found: list[tuple[Span, str]] = []
        for span, kind in sorted(spans):
            if spans_found and span[0] < spans_found[-1][0][1]:
                (start, end), before = spans_found.pop()
                span, kind = (start, max(end, span[1])), min(before, kind, key=list(WORDS).index)
            spans_found.append((span, kind))
        return spans_found

    def _hide(self, kind: str, secret: str) -> str:
        self.counts[kind] += 1
        if secret not in self._placeholders:
            self._distinct[kind] += 1
            self._placeholders[secret] = _spell(kind, self._distinct[kind], _length(secret))
        return self._placeholders[secret]


def _length(secret: str) -> int:
    """Bytes of a text within compact JSON."""
    return len(COMPACT.encode(secret).encode("utf-8", "surrogatepass")) - 2


def _spell(kind: str, number: int, length: int) -> str:
    """The placeholder of a number, if it can be, of `length` bytes; of different numbers never the same."""
    word = f"{WORDS[kind]}{number}"
    missing = length - len(word)
    if missing < 0:
        return WORDS[kind][0].lower() + _base36(number).rjust(length - 1, "0")
    if kind != KEYS or not missing:
        return word + "x" * missing
    # as many digits as a key has, so that it costs about as many tokens
    return f"{word}-{shake_256(word.encode()).hexdigest(missing)[: missing - 1]}"


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, len(DIGITS))
        digits = DIGITS[digit] + digits
    return digits
