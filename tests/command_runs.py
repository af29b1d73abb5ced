"""Commands as a shell runs them: in this process, without the start of another Python, or in a process of their own.

Every command has tests that run it apart, which see how a process starts and ends; all else is seen from here as well.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from unittest.mock import patch

from cachecost.cli import main

ENCODING = "PYTHONIOENCODING"


def run_apart(*words: object, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """`python -m cachecost` in `cwd`, with variables over those of this process."""
    command = [sys.executable, "-m", "cachecost", *map(str, words)]
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def run_here(
    *words: object, cwd: Path | None = None, stdin: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """The same in this process: `main` with streams of bytes, in the encoding that PYTHONIOENCODING names."""
    arguments = [str(word) for word in words]
    with chdir(cwd or Path.cwd()), patch.dict(os.environ, environment), _streams(stdin) as (out, err):
        try:
            main(arguments)
        except SystemExit as ended:
            code = int(ended.code or 0)
    encoding = environment.get(ENCODING, "utf-8")
    stderr_text = err.getvalue().decode(encoding, "backslashreplace")
    return subprocess.CompletedProcess(arguments, code, _lines(out.getvalue().decode(encoding)), _lines(stderr_text))


def printed(*words: object) -> str:
    """What a command prints that ends well, run in this process."""
    done = run_here(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def _streams(stdin: str) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Stand-ins for the standard streams, as Python makes them for pipes; their bytes outlive them."""
    encoding = os.environ.get(ENCODING, "utf-8")
    raw = io.BytesIO(), io.BytesIO()
    stdin_text = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    out = io.TextIOWrapper(raw[0], encoding=encoding)
    err = io.TextIOWrapper(raw[1], encoding=encoding, errors="backslashreplace", line_buffering=True)
    try:
        with patch.multiple(sys, stdin=stdin_text, stdout=out, stderr=err):
            yield raw
    finally:
        for stream in (out, err):
            stream.flush()
            stream.detach()


def _lines(text: str) -> str:
    """Text with the line ends that `text=True` gives to what a process writes."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
