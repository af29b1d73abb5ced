"""People's names: learned where a text says that they are some, then found wherever they stand.

A name is learned from

- a home directory: /home/NAME, /Users/NAME, C:\\Users\\NAME, -Users-NAME-…; and a shell's prompt, NAME@host:~
- an address: the words before `<e-mail>`, and its local part (jane.doe also as Jane Doe, jane-doe and janedoe)
- git: `Author:` lines and their like, `git blame`, `user.name`

Elsewhere it is found as a whole word, in any case. Only whole names and words of four letters or more (three
in home directories, two in scripts without spaces) count there, and none that is on the list of ordinary words
(words.py): a home directory of max is taken out, the word max is not. In a home directory every name goes but
those that systems give (root, ubuntu, runner …). A name that stands in none of these places is never learned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cachecost.conversations.content_free import KNOWN_KEYS, KNOWN_WORDS
from cachecost.conversations.redaction.keys import Span, begins
from cachecost.conversations.redaction.mail import Mail, e_mails_in
from cachecost.conversations.redaction.words import ORDINARY, PARTICLES, SYSTEM

LEAST_AT_HOME, LEAST, LEAST_UNSPACED = 3, 4, 2
UNSPACED = "\u2e80-\U0003ffff"
"""Scripts that write no spaces between words: names begin and end anywhere in them."""
IN_WORD = rf"[^\W_{UNSPACED}]"
BEFORE = rf"(?:(?<!{IN_WORD})|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{{2}})|(?<=\\u[0-9A-Fa-f]{{4}}))"
AFTER = rf"(?!{IN_WORD})"

SEPARATOR = r"(?:/|\\{1,4}|%2[Ff]|%5[Cc])"
HOME = re.compile(
    rf"(?:home|Users|Documents and Settings){SEPARATOR}"
    r"(?:(?<=\\)(?P<spaced>[^\W_][^\\/:*?\"'<>|\n]{0,40})(?=\\)|(?P<name>[^\W_](?:[\w.-]{0,40}\w)?))"
)
FLAT_HOME = re.compile(r"-(?:home|Users)-(?P<name>[^\W_][\w.]{0,40})")
BEFORE_HOME = re.compile(rf"{SEPARATOR}\Z")
DRIVE = re.compile(r"(?:file://|[A-Za-z]:|/[a-z])\Z")
PROMPT = re.compile(r"(?<![\w.-])(?P<name>[A-Za-z_][\w.-]{0,31})@[\w.-]{1,64}:[~/]")

WORD = r"[^\W\d_][\w'’.-]*"
DISPLAYED = re.compile(rf"(?P<name>{WORD}(?:,? {WORD}){{0,4}})[\"']?\s{{0,2}}(?:<|\\u003[cC]|&lt;)\Z")
NO_NAMES = ORDINARY | KNOWN_WORDS | KNOWN_KEYS
"""What is never learned: the API's own words neither."""
FARTHEST = 90
"""Characters before an address that its name is looked for in."""
SIGNED = re.compile(
    rf"(?:(?:Author|Committer|Signed-off-by|Co-authored-by|Reviewed-by|Acked-by):[ \t]+|user\.name[= \t]+[\"']?|"
    rf"\((?=[^()\n]{{2,60}}\d{{4}}-\d\d-\d\d \d\d:\d\d))(?P<name>{WORD}(?: {WORD}){{0,3}})"
)
ESCAPES = re.compile(r"\\[nrt](?=[^\W\d_])")


class Names:
    """The names learned so far, each by its pieces."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], re.Pattern[str]] = {}

    def learn(self, text: str) -> None:
        """Take the names that `text` says are some."""
        for _, name, at_root in _homes(text):
            if at_root:
                self._add(re.split(r"[\s._-]+", name), LEAST_AT_HOME)
        if "@" in text or "%40" in text:
            self._learn_addresses(text)
        if "uthor" in text or "-by:" in text or "user.name" in text or "(" in text:
            for found in SIGNED.finditer(ESCAPES.sub(" ", text)):
                self._add_person(found["name"])

    def spans(self, text: str) -> Iterator[Span]:
        """Where names stand, in no order: learned ones anywhere, others in home directories. They may overlap."""
        yield from (span for span, _, _ in _homes(text))
        lower = text.lower()
        for pieces, pattern in self._known.items():
            if all(piece in lower for piece in pieces):
                yield from (found.span() for found in pattern.finditer(text))

    # -------------------------------------------------------------------------------------- learning

    def _learn_addresses(self, text: str) -> None:
        for mail in e_mails_in(text):
            local = text[mail.start : mail.at].lower()
            self._add(re.split(r"[._-]+", re.sub(r"^\d+\+|\+.*", "", local)))
            if displayed := _display_name(text, mail):
                self._add_person(displayed)
        for found in PROMPT.finditer(text):
            self._add([found["name"]])

    def _add_person(self, name: str) -> None:
        """A name of several words, and each of them."""
        words = [word.strip(".,'’") for word in name.split()]
        first = next((n for n in range(len(words)) if _all_names(words[n:])), len(words))
        words = words[first:]
        while words and words[0].lower() in NO_NAMES:
            words = words[1:]
        if len(words) > 1:
            self._add(words)
        for word in words:
            self._add([word])

    def _add(self, pieces: Sequence[str], least: int = LEAST) -> None:
        """A name that may be written with other separators, or none, between its pieces."""
        lower = tuple(piece.lower() for piece in pieces if piece)
        letters = sum(map(str.isalpha, "".join(lower)))
        unspaced = any(char >= UNSPACED[0] for char in "".join(lower))
        if letters < (LEAST_UNSPACED if unspaced else least) or all(piece in NO_NAMES for piece in lower):
            return
        between = r"[\s._+-]{0,2}" if letters > 6 else r"[\s._+-]{1,2}"
        if lower not in self._known:
            name = between.join(map(re.escape, lower))
            self._known[lower] = re.compile(f"{BEFORE}{name}{AFTER}", re.IGNORECASE)


def _homes(text: str) -> Iterator[tuple[Span, str, bool]]:
    """Home directories: where the name stands, the name, and whether the path begins there."""
    if not ("home" in text or "Users" in text or "Documents and Settings" in text):
        return
    for found in HOME.finditer(text):
        before = BEFORE_HOME.search(text, max(0, found.start() - 4), found.start())
        at_root = before is not None and _begins_path(text, before.start())
        if before is not None and _is_somebody(name := found["spaced"] or found["name"], at_root):
            yield found.span(found.lastgroup or ""), name, at_root
    for found in FLAT_HOME.finditer(text):
        at_root = begins(text, found.start())
        if at_root and _is_somebody(found["name"], at_root):
            yield found.span("name"), found["name"], at_root


def _is_somebody(name: str, at_root: bool) -> bool:
    """Somewhere within a path, `home` may be any folder: there nothing goes that is an ordinary word."""
    return name.lower() not in SYSTEM if at_root else name.lower().partition(".")[0] not in ORDINARY


def _begins_path(text: str, at: int) -> bool:
    if begins(text, at) and (at == 0 or text[at - 1] not in "._-/*~\\:"):
        return True
    return DRIVE.search(text, max(0, at - 7), at) is not None


def _display_name(text: str, mail: Mail) -> str | None:
    before = ESCAPES.sub(" ", text[max(0, mail.start - FARTHEST) : mail.start])
    found = DISPLAYED.search(before)
    return found["name"] if found else None


def _all_names(words: Sequence[str]) -> bool:
    """Whether words are written as a name is: capitals, but for particles."""
    return bool(words) and all(word and (not word[0].islower() or word.lower() in PARTICLES) for word in words)
