"""Parses YAML text into plain values and remembers the place of each, so that an error can point to it.

YAML 1.2 as people mean it: `no` is a word, `21_000` an integer, a date stays text, a number keeps its
digits. What YAML allows but is never meant (a duplicate key, a tag, an alias within itself) is an error;
all errors are collected. pydantic's errors about such a file get the user's own names and places.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachecost.base.errors import Fault, InputError, nearest
from cachecost.base.limits import DEEPEST, TOO_DEEP, OutOfLimits, read_whole, whole_number, within_limits
from cachecost.base.structs import replace

if TYPE_CHECKING:
    from pydantic import ValidationError


TAG = "tag:yaml.org,2002:"
SCHEMA = (
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    (
        "float",
        r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+"
        r"|[-+]?\.[0-9_]+(?:[eE][-+][0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("int", r"[-+]?0b[0-1_]+|[-+]?0o?[0-7_]+|[-+]?[0-9_]+|[-+]?0x[0-9a-fA-F_]+", "-+0123456789"),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
)
"""What a word without quotes may be besides text: (tag, pattern, what it begins with), as YAML 1.2 has it."""
SCHEMA_1_1 = (("bool", "yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF", "yYnNoO"), *SCHEMA)
"""The same, with the truth values of YAML 1.1."""


def compose(text: str, version: tuple[int, int] = (1, 2)) -> Any:
    """The root node (PyYAML's) of the one document in `text`; None for an empty one.

    Raises PyYAML's YAMLError where it is no YAML, OutOfLimits where it is nested too deeply. libyaml reads it; the
    parser in Python, ten times as slow, only says what is wrong, as it says it better.
    """
    from yaml import YAMLError

    fast, slow = _loaders(version)
    with within_limits():
        try:
            return fast(text).get_single_node()
        except YAMLError:
            slow(text).get_single_node()
            raise


@cache
def _loaders(version: tuple[int, int]) -> tuple[Any, Any]:
    from yaml import composer, parser, reader, resolver, scanner

    class Limited(resolver.BaseResolver):  # type: ignore[misc]
        depth = 0

        def descend_resolver(self, node: Any, index: Any) -> None:
            self.depth += 1
            if self.depth > DEEPEST:
                raise OutOfLimits(*TOO_DEEP)

        def ascend_resolver(self) -> None:
            self.depth -= 1

    for tag, pattern, first in SCHEMA if version == (1, 2) else SCHEMA_1_1:
        Limited.add_implicit_resolver(TAG + tag, re.compile(rf"(?:{pattern})\Z"), list(first))

    class Slow(Limited, reader.Reader, scanner.Scanner, parser.Parser, composer.Composer):  # type: ignore[misc]
        def __init__(self, text: str) -> None:
            reader.Reader.__init__(self, text)
            for base in (scanner.Scanner, parser.Parser, composer.Composer, Limited):
                base.__init__(self)

    try:
        from yaml.cyaml import CParser
    except ImportError:  # PyYAML was built without libyaml
        return Slow, Slow

    class Fast(Limited, CParser):  # type: ignore[misc]
        def __init__(self, text: str) -> None:
            CParser.__init__(self, text)
            Limited.__init__(self)

    return Fast, Slow


Way = tuple[str | int, ...]
"""From the top to a value: keys and list indices."""

MOST_VALUES = 100_000
"""Aliases can make a small file denote a huge one; no scenario is near this."""


class ExactNumber(float):
    """A number that keeps the digits it was written with: `Decimal(str(number))` is exact."""

    __slots__ = ("text",)

    def __new__(cls, text: str) -> ExactNumber:
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """Where a value was written: a file (or a `--set`), with line and column from 1."""

    file: str
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class PlacedValue:
    """A value and the place of every part of it: for a mapping's entry that of its key, for a list item its own.

    `faults` are errors of the text itself that did not prevent reading it.
    """

    value: Any
    places: Mapping[Way, SourcePlace]
    faults: list[Fault] = field(default_factory=list)

    def place(self, way: Way) -> SourcePlace:
        """The place of `way`, or of the nearest enclosing value."""
        while way and way not in self.places:
            way = way[:-1]
        return self.places[way]

    def fault(self, way: Way, message: str) -> Fault:
        """`message` about the value at `way`, in the user's own names."""
        place = self.place(way)
        said = f"{spell(way)}: {message}" if way else message
        return Fault(place.file, said, place.line, place.column)

    def at(self, way: Way) -> PlacedValue:
        """The part at `way`, as a value of its own. Raises KeyError if there is nothing."""
        value = value_at(self.value, way)
        inner = {rest: self.places[way + rest] for rest in _ways(value) if way + rest in self.places}
        return PlacedValue(value, {(): self.place(way), **inner})

    def put(self, way: Way, part: PlacedValue) -> PlacedValue:
        """A copy with `part` at `way`, which `way_of` found."""
        places = {other: place for other, place in self.places.items() if other[: len(way)] != way}
        made = (way[:number] for number in range(1, len(way)) if not _has(self.value, way[:number]))
        places |= dict.fromkeys(made, part.place(()))  # mappings that come with the part
        places |= {way + inner: place for inner, place in part.places.items()}
        return replace(self, value=_put(self.value, way, part.value), places=places)

    def way_of(self, dotted: str) -> Way:
        """`strategies.1.ttl` as a way to a value that is there or could be put there.

        Raises LookupError saying why nothing can stand there.
        """
        value: Any = self.value
        way: Way = ()
        for word in dotted.split("."):
            way = (*way, _step(value, word, way))
            value = value[int(word)] if isinstance(value, list) else (value or {}).get(word)
        return way

    def without(self, *keys: str) -> PlacedValue:
        """A copy of a mapping that lacks these keys."""
        value = {key: value for key, value in self.value.items() if key not in keys}
        places = {way: place for way, place in self.places.items() if not way or way[0] not in keys}
        return replace(self, value=value, places=places)


def spell(way: Way) -> str:
    """`('strategies', 1, 'breakpoints')` as people write it: `strategies[1].breakpoints`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in way)
    return text.removeprefix(".")


def _ways(value: Any) -> Iterator[Way]:
    yield ()
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, part in inside:
        yield from ((step, *rest) for rest in _ways(part))


def value_at(value: Any, way: Way) -> Any:
    """What stands at `way`. Raises KeyError or IndexError if there is nothing."""
    for step in way:
        if not isinstance(value, dict if isinstance(step, str) else list):
            raise KeyError(step)
        found: Any = value
        value = found[step]
    return value


def _has(value: Any, way: Way) -> bool:
    try:
        value_at(value, way)
    except (KeyError, IndexError):
        return False
    return True


def _step(value: Any, word: str, way: Way) -> str | int:
    """`word` as a key or an index of `value`, which stands at `way`. Raises LookupError."""
    if not word:
        raise LookupError("expected words between dots")
    if isinstance(value, list):
        number = whole_number(word)
        if number is None or number >= len(value):
            raise LookupError(f"{spell(way)}: expected the number of an item, 0 to {len(value) - 1}; got {word!r}")
        return number
    if value is not None and not isinstance(value, dict):
        raise LookupError(f"{spell(way)}: is the single value {value!r}; nothing in it is named {word!r}")
    return word


def _put(value: Any, way: Way, part: Any) -> Any:
    """A copy of `value` with `part` at `way`; mappings are made where there are none."""
    if not way:
        return part
    step, rest = way[0], way[1:]
    if isinstance(step, int):
        return [*value[:step], _put(value[step], rest, part), *value[step + 1 :]]
    return {**(value or {}), step: _put((value or {}).get(step), rest, part)}


def read(path: str | Path) -> PlacedValue:
    """The YAML file at `path`. Raises InputError: unreadable, not UTF-8, not YAML, empty."""
    file = str(path)
    data = read_whole(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = error.object[: error.start]
        line, column = start.count(b"\n") + 1, error.start - (start.rfind(b"\n") + 1) + 1
        message = f"expected UTF-8; got the byte 0x{error.object[error.start]:02x}"
        raise InputError([Fault(file, message, line, column)]) from None
    return parse(text, file)


def parse(text: str, file: str) -> PlacedValue:
    """The one document in `text`. Raises InputError where it is not YAML or empty."""
    from yaml import MarkedYAMLError, YAMLError

    builder = _ValueBuilder(file)
    try:
        node = compose(text)
        if node is None:
            raise InputError([Fault(file, "expected a mapping; got an empty file", 1, 1)])
        return PlacedValue(builder.build(node, ()), builder.places, builder.faults)
    except OutOfLimits as error:
        raise InputError([Fault(file, str(error), 1, 1)]) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else ()
        words = NAMED_IN_TEXT.sub(r"\1", " ".join(str(error.problem or error.context).split()))
        raise InputError([Fault(file, f"not valid YAML: {words}", *place)]) from None
    except YAMLError as error:
        before = text[: getattr(error, "position", 0)]
        character = getattr(error, "character", "")
        shown = chr(character) if isinstance(character, int) else character
        message = f"not valid YAML: the character {shown!r} is not allowed"
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise InputError([Fault(file, message, line, column)]) from None


NAMED_IN_TEXT = re.compile(r"(alias|anchor|handle) '.*'")
"""Where the parser quotes words of the file: it may be a foreign one, and they a secret that begins like a sign."""


class _ValueBuilder:
    """Turns nodes into values; collects places and errors."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.places: dict[Way, SourcePlace] = {}
        self.faults: list[Fault] = []
        self._open: set[int] = set()

    def build(self, node: Any, way: Way) -> Any:
        self.places.setdefault(way, self._place(node))
        if len(self.places) > MOST_VALUES:
            raise InputError([self._fault(node, way, f"expected at most {MOST_VALUES:,} values")])
        if id(node) in self._open:
            return self._reject(node, way, "an alias within what it stands for")
        if len(self._open) >= DEEPEST:
            raise OutOfLimits(*TOO_DEEP)
        self._open.add(id(node))
        value = self._value(node, way)
        self._open.discard(id(node))
        return value

    def _value(self, node: Any, way: Way) -> Any:
        name = str(node.tag).removeprefix(TAG)
        if name in SCALARS and isinstance(node.value, str):
            return scalar(node.value, name)
        if name == "seq":
            return [self.build(item, (*way, number)) for number, item in enumerate(node.value)]
        if name != "map":
            return self._reject(node, way, f"expected a plain value; got the tag {node.tag}")
        value: dict[str, Any] = {}
        for key, item in node.value:
            if not isinstance(key.value, str):
                self._reject(key, way, "a key that is no single word")
            elif key.value in value:
                first = self.places[(*way, key.value)].line
                self.faults.append(self._fault(key, (*way, key.value), f"given twice; first in line {first}"))
            else:
                self.places[(*way, key.value)] = self._place(key)
                value[key.value] = self.build(item, (*way, key.value))
        return value

    def _place(self, node: Any) -> SourcePlace:
        return SourcePlace(self.file, node.start_mark.line + 1, node.start_mark.column + 1)

    def _fault(self, node: Any, way: Way, message: str) -> Fault:
        place = self._place(node)
        return Fault(self.file, f"{spell(way)}: {message}" if way else message, place.line, place.column)

    def _reject(self, node: Any, way: Way, message: str) -> None:
        self.faults.append(self._fault(node, way, message))


SCALARS = ("str", "int", "float", "bool", "null", "timestamp", "merge", "value")
"""The tags that YAML gives to words without one; the last three are words to us."""
PLAIN = {"true": True, "false": False}
MOST_WHOLE = 1 << 64
"""Larger whole numbers are no numbers to us."""
PREFIXED = re.compile(r"[-+]?0[box]")


def scalar(text: str, tag: str) -> Any:
    """The value of a scalar that YAML resolved to `tag`; text that is no finite number stays text."""
    if tag == "null":
        return None
    if tag == "bool":
        return PLAIN.get(text.lower(), text)
    digits = text.replace("_", "")
    try:
        if tag == "int":
            number = int(digits, 0 if PREFIXED.match(digits) else 10)
            return number if abs(number) <= MOST_WHOLE else text
        if tag == "float" and isfinite(exact := ExactNumber(digits)):
            return exact
    except ValueError:
        pass
    return text


Schema = Mapping[str, Any]
Context = Mapping[str, Any]

WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "a mapping",
    "array": "a list",
}
"""JSON Schema's types, as people call them."""

EXPECTED: dict[str, Callable[[Context], str]] = {
    "string_type": lambda _: "text",
    "int_type": lambda _: "a whole number",
    "float_type": lambda _: "a number",
    "bool_type": lambda _: "true or false",
    "dict_type": lambda _: "a mapping",
    "model_type": lambda _: "a mapping",
    "model_attributes_type": lambda _: "a mapping",
    "dataclass_type": lambda _: "a mapping",
    "list_type": lambda _: "a list",
    "tuple_type": lambda _: "a list",
    "greater_than_equal": lambda context: f"at least {context['ge']}",
    "greater_than": lambda context: f"more than {context['gt']}",
    "less_than_equal": lambda context: f"at most {context['le']}",
    "less_than": lambda context: f"less than {context['lt']}",
    "too_short": lambda context: f"a list of at least {context['min_length']}",
    "too_long": lambda context: f"a list of at most {context['max_length']}",
    "string_too_short": lambda context: "some text",
}


def show_value(value: object) -> str:
    """A value as an error shows it: short, spelled as in YAML."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else f"a list of {len(value)}"
    text = str(value) if isinstance(value, int | ExactNumber) else repr(str(value))
    return text if len(text) <= 60 else text[:59] + "…"


def show_kind(value: object) -> str:
    """As `show_value` for the whole of a file that may be a foreign one, with secrets in it: text is not quoted."""
    return "text" if isinstance(value, str) else show_value(value)


def one_of(names: Sequence[str], got: object) -> str:
    """Says `expected one of a, b; got 'x' (did you mean …?)`."""
    return _expected_text(names, [], got)


def _expected_text(names: Sequence[str], phrases: Sequence[str], got: object) -> str:
    near = nearest(got, names) if isinstance(got, str) else ""
    words = ", ".join(f"'{name}'" if "," in name else name for name in names)
    lead = [f"one of {words}" if len(names) > 1 else words] if names else []
    return f"expected {' or '.join(dict.fromkeys([*lead, *phrases]))}; got {show_value(got)}{near}"


def faults_of(error: ValidationError, placed: PlacedValue, schema: Schema) -> list[Fault]:
    """What `error` says about a file's value: one fault a place, in the user's own names.

    `schema` is the JSON Schema of the model that was validated: it knows the keys there could be.
    """
    found: dict[Way, list[dict[str, Any]]] = {}
    walked = [(*_walk(details, placed.value), details) for details in _errors(error)]
    deeper = {union for way, union, _ in walked if union is not None and len(way) > len(union)}
    for way, union, details in walked:
        if union not in deeper or len(way) > len(union or ()):  # else a union's branch of another shape than was given
            found.setdefault(way, []).append(details)
    return [placed.fault(way, _sentence(way, errors, schema)) for way, errors in found.items()]


def _errors(error: ValidationError) -> Iterator[dict[str, Any]]:
    """pydantic's errors, those of a model that a validator called in their place."""
    for details in error.errors(include_url=False):
        inner: Any = details.get("ctx", {}).get("error")
        if hasattr(inner, "errors"):  # a ValidationError
            yield from ({**deeper, "loc": (*details["loc"], *deeper["loc"])} for deeper in _errors(inner))
        else:
            yield dict(details)


def _walk(error: Mapping[str, Any], value: Any) -> tuple[Way, Way | None]:
    """Where an error is, in the user's names, and the place of the union it is one branch of."""
    way: Way = ()
    union: Way | None = None
    steps = error["loc"]
    for number, step in enumerate(steps):
        is_key = isinstance(value, dict) and step in value
        if is_key or (isinstance(value, list) and isinstance(step, int) and step < len(value)):
            value, way = value[step], (*way, step)
        elif number == len(steps) - 1 and error["type"] == "missing":
            way = (*way, step)
        else:
            union = way if union is None else union
    return way, union


def _sentence(way: Way, errors: Sequence[dict[str, Any]], schema: Schema) -> str:
    first = errors[0]
    if first["type"] == "extra_forbidden":
        known = keys_at(schema, way[:-1])
        near = nearest(str(way[-1]), known)
        return f"unknown key{near}" if near or not known else f"unknown key; expected one of {', '.join(known)}"
    if first["type"] == "missing":
        return f"expected {_meaning(schema, way)}; got nothing"
    if first["type"] in ("value_error", "assertion_error"):
        return str(first["ctx"]["error"])
    names = sorted({name for error in errors for name in _literals(error)})
    others = [error for error in errors if not _literals(error)]
    phrases = [
        EXPECTED[one["type"]](one.get("ctx", {})) if one["type"] in EXPECTED else str(one["msg"]) for one in others
    ]
    return _expected_text(names, phrases, first["input"])


def _literals(error: Mapping[str, Any]) -> list[str]:
    """The values of a literal: pydantic gives them as `'a', 'b' or 3`."""
    if error["type"] != "literal_error":
        return []
    return [name.strip("'") for name in re.findall(r"'[^']*'|\d+", error["ctx"]["expected"])]


def _meaning(schema: Schema, way: Way) -> str:
    """What may stand at `way`, in a few words."""
    words: list[str] = []
    for option in _options(schema, way):
        if "enum" in option:
            words.append("one of " + ", ".join(map(str, option["enum"])))
        elif "const" in option:
            words.append(str(option["const"]))
        else:
            found = option.get("type", [])
            words += [WORDS[name] for name in ([found] if isinstance(found, str) else list(found)) if name in WORDS]
    return " or ".join(dict.fromkeys(words)) or "a value"


def keys_at(schema: Schema, way: Way) -> list[str]:
    """The keys a mapping at `way` can have, sorted; [] where any key will do."""
    return sorted({key for option in _options(schema, way) for key in option.get("properties", ())})


def _options(schema: Schema, way: Way) -> list[Schema]:
    """The schemas that may hold at `way`, `$ref` and unions resolved."""
    options = list(_alternatives(schema, schema))
    for step in way:
        inner = [found for option in options if (found := _inside(option, step)) is not None]
        options = [flat for found in inner for flat in _alternatives(found, schema)]
    return options


def _inside(option: Schema, step: str | int) -> Schema | None:
    if isinstance(step, int):
        found = option.get("items")
    else:
        found = option.get("properties", {}).get(step, option.get("additionalProperties"))
    return found if isinstance(found, dict) else None


def _alternatives(schema: Schema, root: Schema) -> Iterator[Schema]:
    if "$ref" in schema:
        yield from _alternatives(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
        return
    branches = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
    for branch in branches:
        yield from _alternatives(branch, root)
    if not branches:
        yield schema
