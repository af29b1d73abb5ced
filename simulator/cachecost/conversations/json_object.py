"""Foreign JSON input, read field by field, with errors that are collected."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cachecost.base import limits
from cachecost.base.errors import Fault, nearest
from cachecost.base.times import LATEST, seconds
from cachecost.conversations.input_files import Warn, byte_lines
from cachecost.prompts.request import show_found


class JsonObject:
    """One JSON object. A missing or wrong field becomes an error and a harmless value.

    `place` comes before a field's name in an error ("events[17]."), `line` is None if the
    file is one JSON value. Read every field, then call `refuse_unknown_keys()`.
    """

    __slots__ = ("data", "faults", "file", "known_keys", "line", "place")

    def __init__(
        self, data: Mapping[str, Any], faults: list[Fault], file: str, line: int | None = None, place: str = ""
    ) -> None:
        self.data, self.faults = data, faults
        self.file, self.line, self.place = file, line, place
        self.known_keys: set[str] = set()

    def fault(self, name: str, message: str) -> None:
        """Add an error at field `name`."""
        self.faults.append(Fault(self.file, f"{self.place}{name}: {message}", self.line))

    def has(self, name: str) -> bool:
        self.known_keys.add(name)
        return self.data.get(name) is not None

    def get(self, name: str, expected: str, good: Callable[[Any], bool], harmless: Any, required: bool = True) -> Any:
        """The value of `name` if `good`; else an error that says what was `expected`. null counts as absent."""
        self.known_keys.add(name)
        value = self.data.get(name)
        if value is None and not required:
            return harmless
        if value is not None and good(value):
            return value
        self.fault(name, f"expected {expected}; got {'nothing' if value is None else show_found(value)}")
        return harmless

    def text(self, name: str, default: str | None = None) -> str:
        value = self.data.get(name)
        if type(value) is str:
            self.known_keys.add(name)
            return value
        return str(self.get(name, "a text", lambda value: isinstance(value, str), default or "", default is None))

    def whole(self, name: str, default: int | None = None, required: bool = False) -> int | None:
        value: int | None = self.get(name, "a whole number from 0", limits.is_tokens, default, required)
        return value

    def number(self, name: str) -> float | None:
        value = self.get(name, "a number from 0", limits.is_number, None, required=False)
        return None if value is None else float(value)

    def epoch(self, name: str) -> float | None:
        """Seconds since the epoch, written as a number."""
        value = self.number(name)
        if value is None or value < LATEST:
            return value
        self.fault(name, f"expected seconds since the epoch; got {show_found(self.data[name])}")
        return None

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.data.get(name)
        if value is True or value is False:
            self.known_keys.add(name)
            return value
        return bool(self.get(name, "true or false", lambda value: isinstance(value, bool), default, required=False))

    def mapping(self, name: str, required: bool = True) -> dict[str, Any]:
        found = self.data.get(name)
        if type(found) is dict:
            self.known_keys.add(name)
            return found
        value: dict[str, Any] = self.get(name, "an object", lambda value: isinstance(value, dict), {}, required)
        return value

    def wholes(self, name: str, required: bool = True) -> list[int]:
        value: list[int] = self.get(
            name,
            "an array of whole numbers",
            lambda value: isinstance(value, list) and all(map(limits.is_id, value)),
            [],
            required,
        )
        return value

    def time(self, name: str) -> float:
        """Seconds since the epoch."""
        value = self.get(name, "an ISO 8601 time", _is_time, None)
        return 0.0 if value is None else seconds(value)

    def moment(self, name: str) -> str | None:
        """An ISO 8601 time as it is written; None if there is none."""
        value: str | None = self.get(name, "an ISO 8601 time", _is_time, None, required=False)
        return value

    def moment_in_seconds(self, name: str) -> float | None:
        """Seconds since the epoch of an ISO 8601 time; None if there is none."""
        value = self.data.get(name)
        try:
            found = None if value is None else seconds(value)
        except (ValueError, TypeError, OverflowError):
            self.moment(name)  # adds the error
            return None
        self.known_keys.add(name)
        return found

    def within(self, value: Mapping[str, Any], place: str) -> JsonObject:
        """An object inside this one, at `place`."""
        return JsonObject(value, self.faults, self.file, self.line, f"{self.place}{place}.")

    def objects(self, name: str) -> list[JsonObject]:
        """An array of objects inside this one; absent is empty."""
        value = self.get(name, "an array of objects", are_objects, [], required=False)
        return [self.within(one, f"{name}[{number}]") for number, one in enumerate(value)]

    def one_of(self, name: str, known: Iterable[str]) -> str:
        """One of the `known` words; the first of them after an error."""
        self.known_keys.add(name)
        words = list(known)
        value = self.data.get(name)
        if isinstance(value, str) and value in words:
            return value
        near = nearest(value, words) if isinstance(value, str) else ""
        got = "nothing" if value is None else show_found(value)
        self.fault(name, f"expected one of {', '.join(words)}; got {got}{near}")
        return words[0]

    def refuse_unknown_keys(self) -> None:
        """Add an error for each key that no method was called with."""
        for name in self.data:
            if name not in self.known_keys:
                self.fault(name, f"unknown key{nearest(name, sorted(self.known_keys))}")


def are_pairs(value: object) -> bool:
    """Whether it is a list of lists of two."""
    return isinstance(value, list) and all(isinstance(one, list) and len(one) == 2 for one in value)


def are_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _is_time(value: object) -> bool:
    try:
        seconds(value)  # type: ignore[arg-type]
    except (ValueError, TypeError, OverflowError):
        return False
    return True


def parse_json(raw: bytes) -> Any:
    """The JSON value of UTF-8 bytes, or the ValueError that says why there is none."""
    try:
        return limits.json_value(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return ValueError(f"not UTF-8 at byte {error.start + 1}")
    except json.JSONDecodeError as error:
        return ValueError(f"{error.msg.removesuffix(' at')} at character {error.pos + 1}")
    except limits.OutOfLimits as error:
        return error


def json_lines(
    path: Path, faults: list[Fault], warn: Warn, lines: Iterable[tuple[int, bytes]] | None = None
) -> Iterator[JsonObject]:
    """The objects of a JSON Lines file, or of its next `lines`, one by one. A damaged line is an error.

    A last line without a newline that does not parse is still being written: it is skipped, with a warning. Raises
    InputError if the file cannot be opened.
    """
    for number, raw in byte_lines(path) if lines is None else lines:
        if len(faults) >= limits.MOST_ERRORS and raw.strip():
            return
        if line := json_line(path, number, raw, faults, warn):
            yield line


def json_line(path: Path, number: int, raw: bytes, faults: list[Fault], warn: Warn) -> JsonObject | None:
    """The object of one line, which `json_lines` describes; None where there is none."""
    value = parse_json(raw)
    if type(value) is dict:
        return JsonObject(value, faults, str(path), number)
    if not raw.strip():
        return None
    is_damaged = isinstance(value, ValueError) and not isinstance(value, limits.OutOfLimits)
    if is_damaged and not raw.endswith(b"\n"):
        warn(f"{path}:{number} the last line is cut off (still being written?): skipped")
    elif isinstance(value, ValueError):
        faults.append(Fault(str(path), reason(value), number))
    else:
        faults.append(Fault(str(path), f"expected an object; got {show_found(value)}", number))
    return None


def reason(error: ValueError) -> str:
    """Why `parse_json` has no value: the text is damaged, or beyond a limit."""
    return str(error) if isinstance(error, limits.OutOfLimits) else f"damaged JSON: {error}"


def are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
