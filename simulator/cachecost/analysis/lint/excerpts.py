"""A short piece of a text around a character, fit to be shown: one line, without keys, tokens and passwords."""

from __future__ import annotations

import re
from collections.abc import Iterator

Span = tuple[int, int]
KEYS = {
    "sk-": r"sk-(?=[\w-]{0,200}\d)[\w-]{16,}",
    "sk-ant-": r"sk-ant-[\w-]{8,}",
    "k-lf-": r"[sp]k-lf-[\w-]{16,}",
    "k_live_": r"[srp]k_live_\w{16,}",
    "k_test_": r"[sr]k_test_\w{16,}",
    "whsec_": r"whsec_[\w+/=-]{16,}",
    "gh": r"gh[opsur]_[A-Za-z0-9]{16,}",
    "github_pat_": r"github_pat_\w{20,}",
    "gl": r"gl[a-z]{2,6}-[\w-]{16,}",
    "xox": r"xox[a-z]-[\w-]{10,}",
    "xapp-": r"xapp-[\w-]{10,}",
    "hooks.slack.com/": r"hooks\.slack\.com/services/[\w/]{20,}",
    "IA": r"A[KS]IA[A-Z0-9]{16}(?![A-Z0-9])",
    "AIza": r"AIza[\w-]{30,}",
    "GOCSPX-": r"GOCSPX-[\w-]{20,}",
    "ya29.": r"ya29\.[\w-]{20,}",
    "hf_": r"hf_[A-Za-z0-9]{20,}",
    "npm_": r"npm_[A-Za-z0-9]{20,}",
    "pypi-": r"pypi-[\w-]{40,}",
    "gsk_": r"gsk_[A-Za-z0-9]{20,}",
    "xai-": r"xai-[A-Za-z0-9]{20,}",
    "pplx-": r"pplx-[A-Za-z0-9]{20,}",
    "r8_": r"r8_[A-Za-z0-9]{20,}",
    "tvly-": r"tvly-[\w-]{16,}",
    "lsv2_": r"lsv2_[a-z]{2}_\w{20,}",
    "lin_api_": r"lin_api_\w{20,}",
    "sbp_": r"sbp_[a-z0-9]{20,}",
    "dapi": r"dapi[0-9a-f]{32}",
    "dop_v1_": r"dop_v1_[0-9a-f]{32,}",
    "dckr_pat_": r"dckr_pat_[\w-]{20,}",
    "hvs.": r"hvs\.[\w-]{20,}",
    "SG.": r"SG\.[\w-]{16,}\.[\w-]{16,}",
    "AGE-SECRET-KEY-1": r"AGE-SECRET-KEY-1[A-Z0-9]{20,}",
    "eyJ": r"eyJ(?:(?<![\w-]eyJ)|(?<=\\[nrt]eyJ)|(?<=%[0-9A-Fa-f]{2}eyJ))[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*){1,3}",
}
"""Keys that show what they are, by a text that every one of them holds."""
PATTERNS = {sign: re.compile(pattern, re.ASCII) for sign, pattern in KEYS.items()}
ESCAPED = re.compile(r"\\[nrtbf]|%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}")
"""What may stand right before a secret and ends with a letter or digit all the same."""
_BETWEEN = r"(?:\s|\\[nrt]|[>|+\"',]|\d{1,5}(?:→|:))*"
PRIVATE_KEY = re.compile(
    r"-----BEGIN ([A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?)-----(?:[\s\S]{0,20000}?-----END \1-----|"
    rf"(?:{_BETWEEN}[A-Za-z0-9+/=]{{16,}})+(?:{_BETWEEN}[A-Za-z0-9+/=]{{1,15}}\Z)?)"
)
"""Whole, or cut off: then the lines after its head that look like base64."""
SECRET_NAME = (
    r"passw(?:or)?d|passphrase|pwd|secret|token(?!iz|s)|api[_-]?key|(?:access|private|account|auth)[_-]?key|credential"
)
NAMED = re.compile(SECRET_NAME, re.IGNORECASE)
ASSIGNED = re.compile(
    rf"(?P<name>{SECRET_NAME})[\w-]{{0,40}}(?:\\*[\"'])?\s{{0,4}}(?::=|=>|[:=])\s{{0,4}}"
    r"(?:\\*(?P<quote>[\"'`])(?P<quoted>(?:(?!(?P=quote))[^\\\n]){8,})|(?P<bare>[^\s\"'`\\,;&<>|]{8,}))",
    re.IGNORECASE,
)
PLACEHOLDER = re.compile(r"[$%<{*].*|.*[$#{]\{.*|[a-z]+://.*|\.{0,2}/.*")
"""Values that stand for a secret or say where it is: templates, addresses, paths."""
CODE = re.compile(r"[^\W\d]\w*(?:(?:\.|::|->)[^\W\d]\w*)+|.*[(\[].*|\d+")
"""Values without quotes that are no secrets: variables, calls, numbers."""
LEAST = 8
BEARER = re.compile(r"\bbearer\s+([\w.~+/-]{8,}=*)", re.IGNORECASE)
AUTHORIZATION = re.compile(
    r"authorization\\*[\"']?\s{0,4}[:=,]\s{0,4}\\*[\"']?(?:basic|token|digest|apikey)\s+([^\s\"'\\]{8,})", re.IGNORECASE
)
USERINFO = re.compile(r"://(?:[^\s/:@\"'<>\\]*:(?P<password>[^\s/@\"'<>\\]+)|(?P<token>[\w.~%-]{16,}))@")


def keys_in(text: str) -> Iterator[Span]:
    """Keys, tokens and passwords, in no order; spans may overlap."""
    for sign, pattern in PATTERNS.items():
        if sign in text:
            yield from (found.span() for found in pattern.finditer(text) if begins(text, found.start()))
    if "PRIVATE KEY" in text:
        yield from (found.span() for found in PRIVATE_KEY.finditer(text))
    lower = text.lower()  # from here on: what stands where a secret belongs
    if "://" in text:
        groups = ((found, found.lastgroup or "") for found in USERINFO.finditer(text))
        yield from (found.span(group) for found, group in groups if not PLACEHOLDER.fullmatch(found[group]))
    if "bearer" in lower:
        yield from (found.span(1) for found in BEARER.finditer(text) if any(map(str.isdigit, found[1])))
    if "authorization" in lower:
        yield from (found.span(1) for found in AUTHORIZATION.finditer(text) if not PLACEHOLDER.fullmatch(found[1]))
    if NAMED.search(lower):
        groups = ((found, found.lastgroup or "") for found in ASSIGNED.finditer(text))
        yield from (
            found.span(group) for found, group in groups if _is_secret(found["name"], found[group], group == "quoted")
        )


def begins(text: str, start: int) -> bool:
    """Whether a word begins at `start`: after no ASCII letter or digit, unless those end an escape (\\n, %3C)."""
    if start == 0 or not (text[start - 1].isascii() and text[start - 1].isalnum()):
        return True
    return any(ESCAPED.fullmatch(text, max(0, start - width), start) for width in (2, 3, 6))


def _is_secret(name: str, value: str, quoted: bool) -> bool:
    is_password = name.lower()[:2] in ("pa", "pw")
    if len(value) < LEAST or PLACEHOLDER.fullmatch(value) or (not is_password and any(map(str.isspace, value))):
        return False
    if not quoted and CODE.fullmatch(value) and not (is_password and value.isdigit()):
        return False
    return any(map(str.isdigit, value)) or (quoted and is_password)


BEFORE, AFTER = 32, 48
KEY_LENGTH = 256
HERE = "▮"
"""Stands where the text goes on: for the first character that differs, or after the word that is meant."""
CUT = "…"


def excerpt(text: str, at: int, length: int = 0) -> str:
    """What stands before character `at`, in one line, ending in ▮; what looks like a key is hidden.

    The last `length` characters are the word that is meant: the excerpt begins before it.
    """
    start = _word_start(text, max(0, at - length - BEFORE), at - length)
    return f"{_show_part(text, start, at)}{HERE}{CUT if at < len(text) else ''}"


def excerpt_around(text: str, at: int, before: int = BEFORE, after: int = AFTER) -> str:
    """What stands around character `at`, in one line, "…" where the text goes on; what looks like a key is hidden."""
    end = min(len(text), at + after)
    return f"{_show_part(text, _word_start(text, max(0, at - before), at), end)}{CUT if end < len(text) else ''}"


def _show_part(text: str, start: int, end: int) -> str:
    """The characters from `start` to `end`; a key may begin before them and go on after them."""
    shift = max(0, start - KEY_LENGTH)
    spans = [(one + shift, other + shift) for one, other in keys_in(text[shift : end + KEY_LENGTH])]
    characters = (
        "*" if any(one <= number < other for one, other in spans) else text[number] for number in range(start, end)
    )
    return f"{CUT if start else ''}{' '.join(''.join(characters).split())}"


def _word_start(text: str, start: int, end: int) -> int:
    """Where the first whole word from `start` on begins; `start` itself where none begins before `end`."""
    if start == 0 or text[start - 1].isspace():
        return start
    return next((number + 1 for number in range(start, end - 1) if text[number].isspace()), start)
