r"""Number formats, the same in every view. Numbers are rounded once.

"–" means unknown and "$0.00" means zero. A nonzero number is never printed as zero, nor 99.99% as 100%.
Halves are rounded up. A number has the same text in a sentence as in a table.
The numbers of one column have one precision: `dollar_places` and `percent_places` say which, `token_column` writes it.

Makes foreign text safe to print: model ids, tool names, paths, sessions, titles of a recording.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, ROUND_UP, Decimal

LINES = r"\n\t"
ACTIVE = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls: escape sequences, a bell, a carriage return, C1
    r"\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # unseen, or turning
    r"\ud800-\udfff\U000e0000-\U000e007f"  # halves of a character, and tags
)
IN_TEXT = re.compile(f"[{ACTIVE}]")
IN_LINE = re.compile(f"[{ACTIVE}{LINES}]")
FORMULA = re.compile(r"\s*[=+\-@\t\r|%]")
COMMAND = re.compile(r"^(\s*)(?::(?=:))|#(?=#(?:vso)?\[)", re.MULTILINE)
"""What a CI runner takes for a command: `::` where a line begins, `##[` and `##vso[` anywhere."""
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?%?")


def inert(text: str) -> str:
    """`text` as one line without control characters."""
    return text if text.isascii() and text.isprintable() else IN_LINE.sub(_escape, text)


def inert_text(text: str) -> str:
    """`text` of several lines: line ends and tabs stay."""
    return IN_TEXT.sub(_escape, text)


def inert_output(text: str) -> str:
    """`text` for stdout and stderr: as `inert_text`, and no line of it is a command to a CI runner."""
    return without_commands(inert_text(text))


def inert_json(line: bytes) -> bytes:
    """A line of JSON as `inert_output`; it means the same."""
    acts = not line.isascii() or b"\x7f" in line or b"##" in line
    return inert_output(line.decode("utf-8", "surrogatepass")).encode() if acts else line


def without_commands(text: str) -> str:
    """`text` without what a CI runner takes for a command."""
    if "::" not in text and "##" not in text:
        return text
    return COMMAND.sub(lambda match: f"{match[1] or ''}\\u{ord(match[0][-1]):04x}", text)


def file_name(name: str) -> str:
    """A file's name as text: of a name that is not UTF-8, other bytes are shown as `\\xff`."""
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "backslashreplace")


def inert_cell(text: str) -> str:
    """A cell of a table that a spreadsheet may open: inert, and no formula (OWASP, CSV injection)."""
    shown = inert_text(text)
    return f"'{shown}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else shown


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


SIGNS_AS_ASCII = {"–": "-", "−": "-", "±": "+-", "→": "->", "·": "|", "…": "~", "✗": "x", "×": "x", "†": "*", "▮": "|"}
QUOTES_AS_ASCII = {"“": '"', "”": '"', "‘": "'", "’": "'"}
BARS_AS_ASCII = {**dict.fromkeys("▏▎▍", ""), **dict.fromkeys("▌▋▊▉█", "#")}
AS_ASCII = {**SIGNS_AS_ASCII, **QUOTES_AS_ASCII, **BARS_AS_ASCII}
TO_ASCII = str.maketrans(AS_ASCII)
SIGNS = "cachecost.signs"
"""The error handler of an encoder: a sign that the encoding lacks becomes ASCII, other characters `?`."""

PLAIN_ASCII = "cachecost_ascii"
"""ASCII by another name: click writes UTF-8 past a stream whose encoding is called ASCII."""


def encodable(text: str, encoding: str) -> str:
    """`text`, or where `encoding` lacks one of its signs, ASCII in the place of all of them."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(TO_ASCII).encode(encoding, SIGNS).decode(encoding)
    return text


def _sign(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(AS_ASCII.get(letter, "?") for letter in lacking), error.end


def _plain_ascii(name: str) -> codecs.CodecInfo | None:
    if name != PLAIN_ASCII:
        return None
    ascii_ = codecs.lookup("ascii")
    pair = ascii_.incrementalencoder, ascii_.incrementaldecoder
    return codecs.CodecInfo(ascii_.encode, ascii_.decode, ascii_.streamreader, ascii_.streamwriter, *pair, PLAIN_ASCII)


codecs.register_error(SIGNS, _sign)
codecs.register(_plain_ascii)


UNKNOWN = "–"
MINUS = "−"
TENTH_OF_A_DOLLAR = Decimal("0.1")
HUNDRED = Decimal(100)
HALF = Decimal("0.5")
TEN_ROUNDED = Decimal("9.95")
"""Percent from which on no place is written."""
CENTS = 2
LONG_NAME = re.compile(r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(~[0-9a-f]{8})[0-9a-f]{8}")
"""A UUID, or the digest that stands for a name in a recording without content."""

TOKEN_STEPS = (
    (1_000, 1, 0, ""),
    (9_950, 1_000, 1, "k"),
    (999_500, 1_000, 0, "k"),
    (9_995_000, 10**6, 2, "M"),
    (99_950_000, 10**6, 1, "M"),
    (999_500_000, 10**6, 0, "M"),
)
"""Below which count, in which unit, with how many places. Limits are where rounding moves to the next."""


def exact(amount: Decimal) -> str:
    """All digits, never an exponent, no zeros at the end: "0.59375". For machines."""
    text = f"{amount:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def exact_or_none(amount: Decimal | None) -> str | None:
    """As `exact`; None where the amount is unknown."""
    return None if amount is None else exact(amount)


def dollars(amount: Decimal | None, places: int | None = None) -> str:
    """Dollars to the cent; under ten cents three significant digits: "$24.10", "$0.0475", "$0.02".

    `places` are those of a column (`dollar_places`): an amount below the last digit is "<$0.01".
    """
    if amount is None:
        return UNKNOWN
    size = abs(amount)
    if places is not None:
        return _in_column(_formatting_sign(amount), "$", size, places, "")
    return _formatting_sign(amount) + "$" + _two_places_at_least(_round(size, dollar_places([amount])))


def dollar_places(amounts: Iterable[Decimal | None]) -> int:
    """Digits after the point in a column of dollars: cents, more only where all amounts are under ten cents."""
    largest = max((abs(amount) for amount in amounts if amount is not None), default=Decimal(0))
    return CENTS if largest >= TENTH_OF_A_DOLLAR or not largest else CENTS - largest.adjusted()


def dollar_column(amounts: Sequence[Decimal | None]) -> list[str]:
    """A column of dollars in one precision: "$2.44", "$0.04", "$0.02"; "$0.0475", "$0.0207" where all are small."""
    places = dollar_places(amounts)
    return [dollars(amount, places) for amount in amounts]


def dollar_range(least: Decimal | None, most: Decimal | None, places: int | None = None) -> str:
    """A range of dollars: "$1.20–3.40"; one amount where both have the same text."""
    low, high = dollars(least, places), dollars(most, places)
    return low if most is None else range_text(low, high).replace("–$", "–")


def range_text(low: str, high: str, between: str = "–") -> str:
    """ "2–6", "$1.20 to $3.40"; one text where both are the same."""
    return low if low == high else f"{low}{between}{high}"


def rough_dollars(amount: Decimal) -> str:
    """Dollars of an error margin: to the cent, under ten cents two significant digits: "$0.40", "$0.087"."""
    places = 2 if amount >= TENTH_OF_A_DOLLAR or not amount else 1 - amount.adjusted()
    return "$" + _two_places_at_least(_round(amount, places))


def margin_text(share: Decimal | float, usd: Decimal | None = None) -> str:
    """An error margin with its sign: "±5.9%", "±5.9% → ±$0.78" with what it is in `usd`; "" where there is none."""
    return f"±{percent(share)}{'' if usd is None else f' → ±{rough_dollars(usd)}'}" if share else ""


def exact_dollars(amount: Decimal) -> str:
    """Every digit of an amount: "$0.59375", "$0.95"."""
    return _formatting_sign(amount) + "$" + _two_places_at_least(abs(amount))


def dollar_change(amount: Decimal | None, places: int | None = None) -> str:
    """Dollars with their sign: "+$0.40", "−$11.10", "$0.00"."""
    return ("+" if amount is not None and amount > 0 else "") + dollars(amount, places)


def tokens(count: int | None) -> str:
    """Tokens to two or three digits: "950", "1.2k", "310k", "4.90M", "14.1M", "1.41B"."""
    return UNKNOWN if count is None else _tokens_at(count, {})


def token_column(counts: Sequence[int | None]) -> list[str]:
    """A column of tokens, each unit in one precision: "53.6M", "2.6M", "310k"."""
    steps = [_token_step(count) for count in counts if count is not None]
    fewest = {suffix: min(places for _, places, same in steps if same == suffix) for _, _, suffix in steps}
    return [UNKNOWN if count is None else _tokens_at(count, fewest) for count in counts]


def percent_places(ratios: Iterable[Decimal | float | None]) -> int:
    """Digits after the point in a column of percentages: the fewest that distinguish each from 0% and 100%."""
    shares = [abs(Decimal(str(ratio))) * 100 for ratio in ratios if ratio]
    largest = max(shares, default=HUNDRED)
    if largest < 1:
        return -largest.adjusted()
    needs_tenths = any(share < HALF or (abs(share - HUNDRED) <= HALF and share != HUNDRED) for share in shares)
    return 1 if needs_tenths or largest < TEN_ROUNDED else 0


def percent_column(ratios: Sequence[Decimal | float | None], *, signed: bool = False) -> list[str]:
    """A column of percentages in one precision: "+22%", "−6%"; "9.1%", "0.4%"."""
    places = percent_places(ratios)
    return [percent(ratio, signed=signed, places=places) for ratio in ratios]


def percent(ratio: Decimal | float | None, *, signed: bool = False, places: int | None = None) -> str:
    """A ratio as whole percents, one place under 10%, one digit under 1%: "32%", "3.1%", "0.04%".

    `signed` writes "+8%"; a minus is always written. Between 99 and 101% it rounds away from 100.
    `places` are those of a column (`percent_places`).
    """
    if ratio is None:
        return UNKNOWN
    share = Decimal(str(ratio)) * 100
    plus = "+" if signed and share > 0 else ""
    if places is not None and share:
        return _in_column(plus + _formatting_sign(share), "", abs(share), places, "%")
    size = abs(share)
    if 99 < size < 101 and size != HUNDRED:
        rounded = _round(size, 1, ROUND_DOWN if size < HUNDRED else ROUND_UP)
    elif size >= TEN_ROUNDED:
        rounded = _round(size, 0)
    else:
        rounded = _round(size, 1 if size >= 1 or not size else -size.adjusted())
    return f"{plus}{_formatting_sign(share)}{_without_end_zeros(rounded)}%"


def change_text(ratio: Decimal | None) -> str:
    """A change in words: "32% less", "8% more", "the same"."""
    if ratio is None:
        return "not comparable"
    return f"{percent(abs(ratio))} {'less' if ratio < 0 else 'more'}" if ratio else "the same"


def times(ratio: Decimal) -> str:
    """How many times as much: "2.8 ×", "15 ×"."""
    return f"{_without_end_zeros(_round(ratio, 1 if ratio < 10 else 0))} ×"


def duration(seconds: float) -> str:
    """A time span: "7 ms", "1.4 s", "70 s", "41 min", "2.5 h", "3 days".

    Minutes from 90 s on, hours from 90 min, days from 48 h; milliseconds below a second, tenths below ten seconds.
    """
    if seconds <= 0:
        return "0 s"
    if seconds < 0.9995:
        return f"{max(1, round(seconds * 1000))} ms"
    if seconds < 10:
        return f"{_without_end_zeros(_round(Decimal(seconds), 1))} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{_without_end_zeros(_round(Decimal(seconds) / 3600, 1))} h"
    return f"{seconds / 86400:,.0f} days"


def count_text(count: int, noun: str, verb: str = "") -> str:
    """A count with its noun, and a verb in the form that agrees: "1 call", "2 entries", "1 budget holds"."""
    if count == 1:
        return f"1 {noun} {verb}s" if verb else f"1 {noun}"
    ends_in_ies = noun.endswith("y") and noun[-2] not in "aeiou"
    many = f"{count:,} {noun[:-1]}ies" if ends_in_ies else f"{count:,} {noun}s"
    return f"{many} {verb}" if verb else many


def quote(name: str) -> str:
    """A name in quotes, for a sentence: some contain commas, and one is "none"."""
    return f"“{name}”"


def all_of(names: Sequence[str]) -> str:
    """ "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def change(new: Decimal | None, old: Decimal | None) -> Decimal | None:
    """`new` against `old` as a ratio (−0.32 is 32% less); None where either is unknown or `old` is zero."""
    if new is None or not old:
        return None
    return new / old - 1


def point_aligned(cells: Sequence[str]) -> list[str]:
    """The cells with blanks at their ends so that, set flush right, the decimal points of dollars stand in one line.

    Of a range it is the point of the second amount: the first is no part of the column.
    """
    tails = [len(cell) - cell.rfind(".") if "$" in cell else 0 for cell in cells]
    longest = max(tails, default=0)
    return [cell + " " * (longest - tail if tail else 0) for cell, tail in zip(cells, tails, strict=True)]


def short_session(session: str) -> str:
    """The first eight digits of a UUID or a digest; any other name as it is."""
    found = LONG_NAME.fullmatch(session)
    return (found[1] or found[2]) if found else session


def capitalized(words: str) -> str:
    """The words with a capital first letter; the others stay as they are."""
    return words[:1].upper() + words[1:]


def _token_step(count: int) -> tuple[int, int, str]:
    """(unit, places, suffix) that a count is written with."""
    return next((step[1:] for step in TOKEN_STEPS if count < step[0]), (10**9, 2, "B"))


def _tokens_at(count: int, fewest: dict[str, int]) -> str:
    unit, places, suffix = _token_step(count)
    return f"{_round(Decimal(count) / unit, fewest.get(suffix, places)):,f}{suffix}"


def _in_column(sign: str, currency: str, size: Decimal, places: int, unit: str) -> str:
    """A size with `places` digits after the point; below the last digit it becomes "<", never zero."""
    rounded = _round(size, places)
    if size and not rounded:
        return f"{sign}<{currency}{Decimal(1).scaleb(-places):f}{unit}"
    if unit and rounded == HUNDRED != size:
        rounded = _round(size, places, ROUND_DOWN if size < HUNDRED else ROUND_UP)
    return f"{sign}{currency}{rounded:,f}{unit}"


def _formatting_sign(amount: Decimal) -> str:
    return MINUS if amount < 0 else ""


def _round(size: Decimal, places: int, rounding: str = ROUND_HALF_UP) -> Decimal:
    return size.quantize(Decimal(1).scaleb(-places), rounding)


def _without_end_zeros(size: Decimal) -> str:
    text = f"{size:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _two_places_at_least(size: Decimal) -> str:
    whole, _, places = f"{size:,f}".partition(".")
    return f"{whole}.{places.rstrip('0').ljust(2, '0')}"
