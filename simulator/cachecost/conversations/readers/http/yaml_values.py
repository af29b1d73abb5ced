"""Loads the YAML of HTTP recorders as plain values: texts, bytes, numbers, arrays and objects, with any tags.

As YAML 1.1, which PyYAML, Psych and go-yaml write, but times stay texts, and a number without a point is no float.
Known tags: `!!binary` (Psych: `!binary`) is base64; the BytesIO, iterators and tuples that vcrpy leaves in cassettes
are what they hold. Any other tag is passed over.
"""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import DEEPEST, TOO_DEEP, OutOfLimits, within_limits
from cachecost.base.yaml_text import compose

TAG = "tag:yaml.org,2002:"
BINARY = (f"{TAG}binary", "!binary")
HELD_IN = {f"{TAG}python/object/new:_io.BytesIO": "state", f"{TAG}python/object/apply:builtins.iter": "args"}
"""Where a body that was no plain value is kept: the first of these."""
MOST_VALUES = 20_000_000
"""Aliases can make a small file expand to a huge one."""
INT = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?")
"""PyYAML writes no other numbers, and words that are others to YAML 1.2 without quotes."""
TRUE, FALSE = ("true", "yes", "on"), ("false", "no", "off")


def load(data: bytes, file: str) -> tuple[Any, dict[int, int]]:
    """(the document, the line of each object in it by its `id()`). Raises InputError."""
    from yaml import MarkedYAMLError, YAMLError

    builder = _YamlValues(file)
    try:
        text = data.decode("utf-8-sig")
        node = compose(text, (1, 1))
        return (None if node is None else builder.build(node)), builder.lines
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError([Fault(file, "damaged YAML: not UTF-8", line)]) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(str(error.problem or error.context).split())
        raise InputError([Fault(file, f"damaged YAML: {problem}", mark.line + 1 if mark else None)]) from None
    except YAMLError as error:
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        raise InputError([Fault(file, "damaged YAML: a character that is not allowed", line)]) from None
    except OutOfLimits as error:
        raise InputError([Fault(file, str(error))]) from None


class _YamlValues:
    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[int, int] = {}
        self._values = 0
        self._open: set[int] = set()

    def build(self, node: Any) -> Any:
        self._values += 1
        if self._values > MOST_VALUES or id(node) in self._open:
            raise self._fault(node, "recursive aliases, or too many")
        if isinstance(node.value, str):
            tag, text = str(node.tag), node.value
            if tag not in BINARY:
                return text if node.style else _plain(text, tag.removeprefix(TAG))
            try:
                return b64decode("".join(text.split()), validate=True)
            except ValueError:
                raise self._fault(node, "invalid base64") from None
        if len(self._open) >= DEEPEST:
            raise OutOfLimits(*TOO_DEEP)
        self._open.add(id(node))
        from yaml import MappingNode

        value = self._object(node) if isinstance(node, MappingNode) else [self.build(item) for item in node.value]
        self._open.discard(id(node))
        return value

    def _object(self, node: Any) -> Any:
        value = {str(self.build(key)): self.build(item) for key, item in node.value}
        if len(value) < len(node.value):
            raise self._fault(node, "duplicate key")
        name = HELD_IN.get(str(node.tag))
        held = value.get(name) if name else None
        if isinstance(held, list) and held:
            pieces = held[0]
            are_pieces = isinstance(pieces, list) and all(isinstance(one, (str, bytes)) for one in pieces)
            return b"".join(one if isinstance(one, bytes) else one.encode() for one in pieces) if are_pieces else pieces
        self.lines[id(value)] = node.start_mark.line + 1
        return value

    def _fault(self, node: Any, what: str) -> InputError:
        return InputError([Fault(self.file, f"damaged YAML: {what}", node.start_mark.line + 1)])


def _plain(text: str, tag: str) -> Any:
    if tag == "null":
        return None
    if tag == "bool" and text.lower() in TRUE + FALSE:
        return text.lower() in TRUE
    if tag == "int" and INT.fullmatch(text):
        with within_limits():
            return int(text.replace("_", ""))
    return float(text.replace("_", "")) if tag == "float" and FLOAT.fullmatch(text) else text
