"""The page of the public API, made from signatures and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import cachecost
from tools.reference.markdown import prose

HEAD = """# Python

What `import cachecost` gives. Dollars are `Decimal`, tokens `int`, times seconds; the columns of a `frame()` are the
fields of `--json`, [in types to compute with](output-formats.md#csv-and-dataframes). Nothing heavy is imported before
it is used: `frame()` needs pandas, `plot()` matplotlib. A `Source` is a result of `read` or `load_demo`, or a path; a
`LogSource` is the same with bills; a `StrategyLike` is a preset's name, a mapping with the keys of a scenario's
strategy, or "as recorded".
"""
WIDTH = 100


class _Bare(str):
    """An annotation that shows as it was written, without quotes around it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def page() -> str:
    """The page: functions, then types, then errors."""
    public = [(name, getattr(cachecost, name)) for name in cachecost.__all__]
    ordered = sorted(public, key=lambda pair: (_kind(pair[1]), pair[0]))
    return "\n".join([HEAD, *(_section(name, found) for name, found in ordered)])


def _kind(found: Any) -> int:
    if not inspect.isclass(found):
        return 0
    return 2 if issubclass(found, BaseException) else 1


def _section(name: str, found: Any) -> str:
    parts = [f"## {name}", _signature(name, found), _doc(found)]
    if inspect.isclass(found) and not issubclass(found, BaseException):
        parts += [_member(name, method, member) for method, member in _members(found)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _signature(name: str, found: Any) -> str:
    if not callable(found) or (inspect.isclass(found) and issubclass(found, BaseException)):
        return ""
    return f"```python\n{_call(name, found)}\n```"


def _call(name: str, found: Any) -> str:
    """The call as it is written; long ones have a line a parameter."""
    signature = _bare(found)
    line = f"{name}{signature}"
    if len(line) <= WIDTH:
        return line
    alone = {
        each: signature.replace(parameters=[each], return_annotation=inspect.Signature.empty)
        for each in _own(signature)
    }
    shown = [str(one)[1:-1].removeprefix("*, ") for one in alone.values()]
    star = next((n for n, each in enumerate(alone) if each.kind is each.KEYWORD_ONLY), None)
    if star is not None:
        shown.insert(star, "*")
    return f"{name}(\n" + "".join(f"    {each},\n" for each in shown) + ")" + line[line.rindex(")") + 1 :]


def _own(signature: inspect.Signature) -> list[inspect.Parameter]:
    return [each for each in signature.parameters.values() if each.name != "self"]


class _Some:
    """A default whose own words would be another in each run."""

    def __repr__(self) -> str:
        return "…"


def _default(value: Any) -> Any:
    return _Some() if " object at 0x" in repr(value) else value


def _bare(found: Any) -> inspect.Signature:
    """The signature without quotes and without self; a class answers nothing."""
    whole = inspect.signature(found)
    own = [each.replace(annotation=_shown(each.annotation), default=_default(each.default)) for each in _own(whole)]
    answer = inspect.Signature.empty if inspect.isclass(found) else _shown(whole.return_annotation)
    return whole.replace(parameters=own, return_annotation=answer)


def _shown(annotation: Any) -> Any:
    return _Bare(annotation) if isinstance(annotation, str) else annotation


def _members(found: type) -> Iterator[tuple[str, Any]]:
    """The methods and properties that the class writes down itself and says something about."""
    for name, member in vars(found).items():
        shown = isinstance(member, property) or inspect.isfunction(member)
        if shown and not name.startswith("_") and inspect.getdoc(member):
            yield name, member


def _member(name: str, method: str, member: Any) -> str:
    if isinstance(member, property):
        return f"### {name}.{method}\n\n{_doc(member)}"
    return f"### {name}.{method}\n\n```python\n{_call(method, member)}\n```\n\n{_doc(member)}"


def _doc(found: Any) -> str:
    return "\n\n".join(" ".join(prose(part).split()) for part in (inspect.getdoc(found) or "").split("\n\n"))
