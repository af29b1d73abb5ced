"""Sets the clock of a Python program ahead by CACHECOST_CLOCK_SHIFT seconds. Python imports this file by its name.

The classes stay what they are: what tells the time is replaced in them, so a value is of the type that it always was.
Monotonic clocks go on as they are. The project's own `sitecustomize` is imported afterwards.

The file is on the path of another program, of any Python from 3.8 on, so it imports nothing of the package.
"""

from __future__ import annotations

import ctypes
import datetime as dt
import gc
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

SHIFT_S = float(os.environ.get("CACHECOST_CLOCK_SHIFT") or 0)
HERE = str(Path(__file__).parent)
real_time, real_time_ns = time.time, time.time_ns
real_clock_gettime: Any = getattr(time, "clock_gettime", None)  # none on Windows


def now(kind: Any, tz: dt.tzinfo | None = None) -> Any:
    return kind.fromtimestamp(time.time(), tz)


def utcnow(kind: Any) -> Any:
    return kind.fromtimestamp(time.time(), dt.timezone.utc).replace(tzinfo=None)  # noqa: UP017


def at_present(function: Callable[..., Any]) -> Callable[..., Any]:
    """`time.localtime` and its like, whose argument is the present where there is none."""

    def shifted(seconds: float | None = None) -> Any:
        return function(time.time() if seconds is None else seconds)

    return shifted


def clock_gettime(clock: int) -> float:
    return float(real_clock_gettime(clock)) + (SHIFT_S if clock == time.CLOCK_REALTIME else 0)


def strftime(form: str, moment: Any = None, real: Callable[..., str] = time.strftime) -> str:
    return real(form, time.localtime() if moment is None else moment)


def asctime(moment: Any = None, real: Callable[..., str] = time.asctime) -> str:
    return real(time.localtime() if moment is None else moment)


def shift() -> None:
    fields = gc.get_referents(dt.datetime.__dict__)[0]
    fields["now"], fields["utcnow"] = classmethod(now), classmethod(utcnow)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(dt.datetime))
    time.time = lambda: real_time() + SHIFT_S
    time.time_ns = lambda: real_time_ns() + int(SHIFT_S) * 10**9
    for name in ("localtime", "gmtime", "ctime"):
        setattr(time, name, at_present(getattr(time, name)))
    if real_clock_gettime is not None:
        time.clock_gettime = clock_gettime
    time.strftime = strftime
    time.asctime = asctime
    if os.environ.get("CACHECOST_CLOCK_SEEN"):
        Path(os.environ["CACHECOST_CLOCK_SEEN"], "Python").touch()


if SHIFT_S:
    with suppress(Exception):  # another Python than CPython: its clock stays as it is
        shift()
sys.path[:] = [one for one in sys.path if one != HERE]
this = sys.modules.pop(__name__)
try:
    import_module(__name__)
except ImportError:
    sys.modules[__name__] = this
