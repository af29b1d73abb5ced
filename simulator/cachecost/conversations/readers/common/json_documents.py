"""JSON that tools export: JSON Lines, one value a file, an array, or values printed one after another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import OutOfLimits, json_prefix
from cachecost.conversations.input_files import Warn, first_line, read_input
from cachecost.conversations.json_object import JsonObject, json_lines
from cachecost.prompts.wire import show_found


def objects(path: Path, faults: list[Fault], warn: Warn) -> Iterator[JsonObject]:
    """The objects of a file, in order; those of an array one by one. JSON Lines are read line by line.

    What is no object, and what is damaged, becomes a fault. Raises InputError if the file cannot be read.
    """
    if _is_one_value(path):
        yield from _values(path, faults)
    else:
        yield from json_lines(path, faults, warn)


def _is_one_value(path: Path) -> bool:
    """Whether the first line opens a value that goes on over lines, or an array: JSON Lines do neither."""
    first = first_line(path)
    return first.startswith(b"[") or first == b"{"


def _values(path: Path, faults: list[Fault]) -> Iterator[JsonObject]:
    """The objects of one value, or of values that were printed one after another."""
    text = _text(path, faults)
    line = 1
    at = last = _next(text, 0)
    while at < len(text):
        line, last = line + text.count("\n", last, at), at
        try:
            value, end = json_prefix(text, at)
        except json.JSONDecodeError as error:
            reason = f"damaged JSON: {error.msg.removesuffix(' at')} at character {error.colno}"
            faults.append(Fault(str(path), reason, error.lineno))
            return
        except OutOfLimits as error:
            faults.append(Fault(str(path), str(error), line))
            return
        yield from _json_objects(value, faults, path, line)
        at = _next(text, end)


def _text(path: Path, faults: list[Fault]) -> str:
    data = read_input(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        faults.append(Fault(str(path), "damaged JSON: not UTF-8", data.count(b"\n", 0, error.start) + 1))
        return ""


def _next(text: str, at: int) -> int:
    """Where the next value begins."""
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _json_objects(value: Any, faults: list[Fault], path: Path, line: int) -> Iterator[JsonObject]:
    if isinstance(value, dict):
        yield JsonObject(value, faults, str(path), line)
        return
    if not isinstance(value, list):
        faults.append(Fault(str(path), f"expected an object; got {show_found(value)}", line))
        return
    for number, one in enumerate(value):
        if isinstance(one, dict):
            yield JsonObject(one, faults, str(path), line, f"[{number}].")
        else:
            faults.append(Fault(str(path), f"[{number}]: expected an object; got {show_found(one)}", line))


def must_hold(path: Path, expected: str, found: int, faults: list[Fault]) -> None:
    """Raises InputError with the faults; with one that the file is empty, where nothing at all was found."""
    if not found and not faults:
        faults.append(Fault(str(path), f"expected {expected}; got nothing"))
    if faults:
        raise InputError(faults)
