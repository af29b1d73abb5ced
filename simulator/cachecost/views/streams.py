"""stdout and stderr while a command runs: text written to them cannot control the terminal, in any encoding.

What rich styles goes past that: its console makes the text inert piece by piece, and adds its own colours after.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from io import StringIO, TextIOWrapper
from typing import IO, TYPE_CHECKING, Any, Literal, cast

from cachecost.base.formatting import PLAIN_ASCII, SIGNS, encodable, inert, inert_output, inert_text, without_commands

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

REPORT_WIDTH = 120
"""Cells of a report that is written into a pipe, and of its prose at most."""
Colours = Literal["standard", "256", "truecolor", "windows"]


class InertStream(TextIOWrapper):
    """A text stream on which foreign text cannot act."""

    def write(self, text: str, /) -> int:
        super().write(inert_output(text))
        return len(text)

    def write_styled_stream(self, text: str) -> None:
        """Write text whose characters are inert already, with the colours of this program in it."""
        super().write(without_commands(text))

    def write_commands(self, lines: Iterable[str]) -> None:
        """Write lines that are commands to a CI runner; what is foreign in them is escaped already."""
        super().write("".join(f"{line}\n" for line in lines))


class StyledStream:
    """A stream for rich: what it writes has colours and is inert."""

    def __init__(self, stream: InertStream) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        self._stream.write_styled_stream(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def styled_stream(stream: IO[str]) -> IO[str]:
    """`stream` for text whose foreign parts are inert already."""
    return cast("IO[str]", StyledStream(stream)) if isinstance(stream, InertStream) else stream


def print_commands(lines: Iterable[str], stream: IO[str]) -> None:
    if isinstance(stream, InertStream):
        stream.write_commands(lines)
    else:
        stream.writelines(f"{line}\n" for line in lines)


@contextmanager
def inert_streams() -> Iterator[None]:
    """Make stdout and stderr inert while the body runs. Streams without bytes below them stay as they are."""
    with ExitStack() as stack:
        for name in ("stdout", "stderr"):
            stack.enter_context(_inert(name))
        yield


@contextmanager
def _inert(name: str) -> Iterator[None]:
    kept = getattr(sys, name)
    if not isinstance(kept, TextIOWrapper):
        yield
        return
    kept.flush()
    encoding = PLAIN_ASCII if codecs.lookup(kept.encoding).name == "ascii" else kept.encoding
    stream = InertStream(
        kept.buffer, encoding, SIGNS, line_buffering=kept.line_buffering, write_through=kept.write_through
    )
    setattr(sys, name, stream)
    try:
        yield
    finally:
        setattr(sys, name, kept)
        stream.detach()  # the bytes below are another stream's, which closes them


def write_utf8() -> None:
    """Make stdout UTF-8 for what follows: JSON is that in any environment (RFC 8259)."""
    if isinstance(sys.stdout, InertStream):
        sys.stdout.reconfigure(encoding="utf-8", errors=SIGNS)


def inert_console(stream: IO[str], **options: Any) -> Console:
    """rich's console on `stream`. Foreign text in it has no markup, no control characters and, in a cell, one line."""
    return cast("Console", _console_class()(file=styled_stream(stream), markup=False, emoji=False, **options))


def report_console(stream: IO[str], pipe_width: int) -> Console:
    """A console on `stream`, as wide as its terminal or COLUMNS, else `pipe_width` cells."""
    console = inert_console(stream, highlight=False)
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        console.width = pipe_width
    return console


def stream_look(stream: IO[str]) -> tuple[int, Colours | None]:
    """The width of a report on `stream` in cells, and its colour system; None where NO_COLOR or a pipe wants none."""
    console = report_console(stream, REPORT_WIDTH)
    has_colours = console.is_terminal and not console.no_color
    return console.width, cast("Colours | None", console.color_system) if has_colours else None


def render_text(parts: Iterable[RenderableType], width: int, colours: Colours | None = None) -> str:
    """What rich makes of the parts in `width` cells, without the blanks at the ends of lines."""
    page = StringIO()
    console = inert_console(page, width=width, color_system=colours, force_terminal=bool(colours), legacy_windows=False)
    for part in parts:
        console.print(part, highlight=False)
    return without_end_blanks(page.getvalue())


def write_report(text: str, stream: IO[str]) -> None:
    """Write text whose foreign parts are inert; ASCII takes the place of signs that the encoding lacks."""
    styled_stream(stream).write(encodable(text, getattr(stream, "encoding", None) or "utf-8"))


@cache
def _console_class() -> Any:
    from rich.console import Console
    from rich.segment import Segment

    class InertConsole(Console):
        def render_str(self, text: str, **options: Any) -> Any:
            core = text.strip("\n")
            return super().render_str(text.replace(core, inert(core)) if core else text, **options)

        def render(self, renderable: Any, options: Any = None) -> Any:
            for one in super().render(renderable, options):
                yield one if one.control else Segment(inert_text(one.text), one.style)

    return InertConsole


def without_end_blanks(text: str) -> str:
    """The lines of `text` without the blanks at their ends."""
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def print_lines(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
