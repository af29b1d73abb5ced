"""Words in a text that may be others in the next request: times, dates, ids, counters. Patterns, and how sure.

A word is *strong* if it looks like the time of day or like an id made for one session or request: it has the time in
it or is called so. Examples (`e.g. 2024-05-01T10:00:00Z`), versions, digests of commits other than the current one and
ids that last (of a user, an account …) are no candidates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

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


LONGEST_WORD = 80
KIND_NAMES = {"time": "a time", "date": "a date", "id": "an id", "number": "a number", "counter": "a counter"}
NAME_BEFORE = 56
"""How many characters before a word are looked at to learn what it is called."""


class VolatileWord(NamedTuple):
    """A word that may change, from `start` to `end`. A time of day stays the same for `step_s` seconds."""

    start: int
    end: int
    kind: str
    strong: bool
    step_s: float = 0.0


TIME_OF_DAY = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:\s?[AaPp]\.?[Mm]\b\.?)?"
MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?"
DATE_WORDS = rf"(?:\d{{1,2}}(?:st|nd|rd|th)?\s+{MONTH}|{MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?),?\s+\d{{4}}"
MOMENT = re.compile(
    rf"\b(?:(?:\d{{4}}-\d{{2}}-\d{{2}}|{DATE_WORDS}|\d{{1,2}}/\d{{1,2}}/\d{{2,4}})(?:T|,?\s+(?:at\s+)?){TIME_OF_DAY}"
    rf"(?:\s?Z\b|\s?[+-]\d{{2}}:?\d{{2}}\b)?|{MONTH}\s+\d{{1,2}}\s+{TIME_OF_DAY}(?:\s+[A-Z]{{3,4}})?\s+\d{{4}}\b)",
    re.IGNORECASE,
)
CLOCK = re.compile(rf"(?<![\d:.]){TIME_OF_DAY}(?![\d:])")
DAY = re.compile(rf"\b(?:\d{{4}}-\d{{2}}-\d{{2}}|{DATE_WORDS}|\d{{1,2}}/\d{{1,2}}/\d{{4}})\b", re.IGNORECASE)
EPOCH = re.compile(r"(?<![\w.])1[4-9]\d{8}(?:\d{3}|\.\d{1,9})?(?![\w])")
UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE)
HEX = re.compile(r"(?<![\w-])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{16,64}(?![\w-])")
MADE_ID = re.compile(r"\b(?:req|sess|session|conv|run|msg|trace|resp)_(?=[A-Za-z]*\d)[A-Za-z0-9]{12,}\b")
NAMED_ID = re.compile(r"(?<![\w-])(?=[\w-]*\d)[A-Za-z0-9][\w-]{5,63}(?![\w-])")
COUNTER = re.compile(
    r"\b(?:request|turn|iteration|attempt|round|call)\s*(?:no\.?|number|count(?:er)?)?\s*(?:[:=]\s*#?|#)\s*(\d{1,9})\b"
    r"|\b(?:turn|iteration|attempt|round)\s+(\d{1,9})\s+of\s+\d",
    re.IGNORECASE,
)
WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
TODAY = re.compile(
    rf"\b(?:today|it)(?:'s|\s+is)\s+(?:now\s+)?({WEEKDAY}(?:,?\s+(?:the\s+)?(?:{MONTH}\s+\d{{1,2}}|\d{{1,2}}\s+{MONTH}))?"
    rf"|{MONTH}\s+\d{{1,2}}|\d{{1,2}}\s+{MONTH})(?:st|nd|rd|th)?\b(?!,?\s+\d{{4}})",
    re.IGNORECASE,
)
TEMPORARY = re.compile(
    r"(?<=[/\\])(?:tmp[a-z0-9_]{8}|tmp\.[A-Za-z0-9]{10}|[\w.]+-(?=\w*\d)(?=\w*[A-Za-z])[A-Za-z0-9]{6,12})(?![\w.-])"
)
"""A name as mkdtemp, mktemp and Node make it, in a folder for such (`IN_TEMPORARY`)."""
IN_TEMPORARY = re.compile(r"(?:/tmp|/T|\\Temp)[/\\]$", re.IGNORECASE)
PORT = re.compile(r"(?<=:)(?:3276[89]|327[7-9]\d|32[89]\d{2}|3[3-9]\d{3}|[45]\d{4}|6[0-5]\d{3})(?!\d)")
LOCAL = re.compile(r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):$", re.IGNORECASE)
SHORT_HEX = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b")
OF_HEAD = re.compile(
    r"\b(?:HEAD|(?:current|latest|last) (?:git )?(?:commit|sha|revision))[\"'`*]{0,3}(?: is(?: at)?|:| at)?\s*"
    r"[\"'`(]{0,3}$",
    re.IGNORECASE,
)
NOW = re.compile(
    r"\b(?:it(?:'s|\s+is)(?:\s+(?:now|currently))?\s*$|(?:current|now|today'?s?|local|present|server|system|utc|generated|rendered|requested|started|timestamp|time)"
    r"[\s_-]{0,2}(?:date[\s_-]?(?:and[\s_-])?time|datetime|date|time|timestamp|at|on)?"
    r"(?:\s*\([^()]{0,12}\))?[\"'`*>]{0,4}\s*(?:[:=]|is|now|are)?\s*[\"'`*<(]{0,4}(?:\w{3,9},?\s+)?$)",
    re.IGNORECASE,
)
MADE_FOR = (
    r"(?:\b|_)(?:session|request|req|conversation|chat|thread|run|trace|span|correlation|message|msg|job|task"
    r"|invocation|transaction|execution|call|nonce)[\s_-]{0,2}"
)
IS = r"\b[\"'`*]{0,3}\s*(?:[:=#]|\bis\b)\s*[\"'`*<(]{0,4}$"
FRESH = re.compile(rf"{MADE_FOR}(?:id|uuid|guid|key|nonce)?{IS}", re.IGNORECASE)
FRESH_ID = re.compile(rf"{MADE_FOR}(?:id|uuid|guid|nonce){IS}", re.IGNORECASE)
EXAMPLE = re.compile(
    r"\be\.?g\b|\bi\.?e\b|\bexamples?\b|\bsuch as\b|\blike\b|\bformat|\bsample\b|\bdefault|\bsince\b|\buntil\b"
    r"|\bversion|\breleased?\b|\bcut-?off\b|\bdeprecated\b|\bbefore\b|\bafter\b|\bfor instance\b|\bpattern\b",
    re.IGNORECASE,
)
LASTING = re.compile(
    r"(?:user|account|org\w*|project|tenant|team|workspace|customer|device|install\w*|agent|app\w*|client|commit|sha\d*"
    r"|hash|digest|md5|checksum|revision|schema|namespace)[\s_-]{0,2}(?:id|uuid|guid|key)?[\"'`*]{0,3}\s*(?:is|[:=#(@])?\s*[\"'`*<(]{0,4}$",
    re.IGNORECASE,
)
MIDNIGHT = re.compile(r"[T\s]00:00(?::00(?:[.,]0+)?)?\s?(?:Z|[+-]|$)")
WORD = re.compile(r"[\s\"'<>(){}\[\],;=|`]+")
TIME_WORD = re.compile(
    r"[ap]\.?m|morning|afternoon|evening|night|utc|gmt|[ecmp][sd]t|cest?|bst"
    r"|(?:mon|tue(?:s)?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
    r"|jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?",
    re.IGNORECASE,
)


class CandidatePattern(NamedTuple):
    """A pattern, or its group, that is a word that may change. What stands before it in its line decides.

    `name` must stand there, and nothing of `unless`; `strong` says whether the word is, or what must stand there.
    """

    pattern: re.Pattern[str]
    kind: str
    strong: bool | re.Pattern[str]
    name: re.Pattern[str] | None = None
    unless: tuple[re.Pattern[str], ...] = (EXAMPLE,)


CANDIDATES = (
    CandidatePattern(MOMENT, "time", NOW),
    CandidatePattern(CLOCK, "time", True, NOW),
    CandidatePattern(EPOCH, "time", True, NOW),
    CandidatePattern(DAY, "date", False, NOW),
    CandidatePattern(UUID, "id", FRESH, unless=(LASTING, EXAMPLE)),
    CandidatePattern(HEX, "id", FRESH, unless=(LASTING, EXAMPLE)),
    CandidatePattern(MADE_ID, "id", True),
    CandidatePattern(NAMED_ID, "id", True, FRESH_ID),
    CandidatePattern(TODAY, "date", False),
    CandidatePattern(TEMPORARY, "id", True, IN_TEMPORARY),
    CandidatePattern(PORT, "id", False, LOCAL),
    CandidatePattern(SHORT_HEX, "id", False, OF_HEAD),
    CandidatePattern(COUNTER, "counter", False, unless=()),
)
"""Of several that match the same characters the first counts."""


def find_volatile_words(text: str) -> list[VolatileWord]:
    """The candidates in a text, in order, none in another."""
    words: list[VolatileWord] = []
    for row in CANDIDATES:
        for match in row.pattern.finditer(text):
            before_it = text[max(0, match.start() - NAME_BEFORE) : match.start()].rpartition("\n")[2]
            is_named = row.name is None or row.name.search(before_it)
            if not is_named or any(one.search(before_it) for one in row.unless) or MIDNIGHT.search(match[0]):
                continue
            is_strong = bool(row.strong.search(before_it)) if isinstance(row.strong, re.Pattern) else row.strong
            has_no_seconds = row.kind == "time" and re.search(r"(?<![\d:])\d{1,2}:\d{2}(?!:?\d)", match[0])
            step_s = 0.0 if row.kind != "time" else 60.0 if has_no_seconds else 1.0
            words.append(VolatileWord(*match.span(match.lastindex or 0), row.kind, is_strong, step_s))
    found: list[VolatileWord] = []
    for one in sorted(words, key=lambda one: (one.start, -one.end)):
        if not found or one.start >= found[-1].end:
            found.append(one)
    return found


def only_words_changed(old: str, new: str) -> bool:
    """Whether nothing but times, ids and numbers differs between two texts."""
    before, after = WORD.split(old), WORD.split(new)
    if len(before) != len(after):
        return _mask(old) == _mask(new)
    return all(
        one == other
        or all(
            len(word) <= LONGEST_WORD
            and (any(character.isdigit() for character in word) or (TIME_WORD.fullmatch(word.strip(".,")) is not None))
            for word in (one, other)
        )
        for one, other in zip(before, after, strict=True)
    )


def _mask(text: str) -> str:
    parts, last = [], 0
    for one in find_volatile_words(text):
        parts.append(text[last : one.start])
        last = one.end
    return "\0".join((*parts, text[last:]))


def kind_of(text: str, at: int) -> str:
    """What the word around a character is: a time, a date, an id, a counter."""
    for one in find_volatile_words(text):
        if one.start <= at < one.end:
            return one.kind
    start = max((match.end() for match in WORD.finditer(text, 0, at + 1)), default=0)
    word = WORD.split(text[start:], maxsplit=1)[0]
    return "number" if re.fullmatch(r"[#$€]?[\d.,:%]+", word) else "id"
