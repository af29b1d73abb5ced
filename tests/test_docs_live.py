"""What docs/how-to/live.md shows of `serve` and `record` is what its program gets, through both, on loopback."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from docs_pages import DOCS, ROOT, same, trimmed

PAGE = DOCS / "how-to/live.md"
KEPT = {key: value for key, value in os.environ.items() if not key.startswith("ANTHROPIC_")}
ENVIRONMENT = KEPT | {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONPATH": str(ROOT / "simulator")}
WITHOUT_CTOK = "import sys\nsys.modules['ctok'] = None\n"
"""Run by every process at its start: the figures are those of the extras that the page says to install."""


@contextmanager
def listening(*words: str, own: Path) -> Iterator[tuple[str, list[str]]]:
    """A command that listens: its address, and (when it has ended) all that it printed; stderr goes to stdout.

    `own` is a folder whose modules come first.
    """
    command = [sys.executable, "-m", "cachecost", *words, "--port", "0"]
    environment = ENVIRONMENT | {"PYTHONPATH": f"{own}{os.pathsep}{ENVIRONMENT['PYTHONPATH']}"}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    said: list[str] = []
    try:
        address = next(found[1] for line in process.stdout if (found := _address(line)))
        yield address, said
        process.send_signal(signal.SIGINT)
        said += process.stdout.read().splitlines()
        process.wait(20)
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def _address(line: str) -> re.Match[str] | None:
    return re.search(r"ANTHROPIC_BASE_URL=(http://127\.0\.0\.1:\d+)", line)


def shown(command: str) -> str:
    """What the page shows of a command."""
    found = re.search(rf"<!-- run: {command} -->\n```text\n(.*?)```", PAGE.read_text(), flags=re.S)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What both commands print while the page's program runs through the recorder against the simulated API."""
    folder, own = tmp_path_factory.mktemp("live"), tmp_path_factory.mktemp("own")
    (own / "sitecustomize.py").write_text(WITHOUT_CTOK)
    serve = ("serve", "--clock", "+2s", "--record", str(folder / "calls.jsonl"))
    with listening(*serve, own=own) as (api, bill), ExitStack() as recorder:
        record = ("record", "--upstream", api, "-o", str(folder / "mine.jsonl"))
        through, lines = recorder.enter_context(listening(*record, own=own))
        _run_program(through)
    return {"serve": _after(bill, r"^\$"), "record": _after(lines, r"^call 1 ").replace(str(folder) + "/", "")}


def _run_program(address: str) -> None:
    own = {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "anything"}
    program = [sys.executable, str(DOCS / "examples" / "three_questions.py")]
    done = subprocess.run(program, env=ENVIRONMENT | own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _after(lines: list[str], begins: str) -> str:
    """The lines from the one that begins so on, without those that name a file."""
    first = next(at for at, line in enumerate(lines) if re.search(begins, line))
    return trimmed("\n".join(line for line in lines[first:] if not re.search(r"recorded in .*calls\.jsonl", line)))


@pytest.mark.slow
@pytest.mark.parametrize("command", ["serve", "record"])
def test_the_page_shows_what_is_printed(command: str, printed: dict[str, str], request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-goldens"):
        old, new = f"<!-- run: {command} -->\n```text\n{shown(command)}```", printed[command]
        Path(PAGE).write_text(PAGE.read_text().replace(old, f"<!-- run: {command} -->\n```text\n{new}\n```"))
    assert same(shown(command), printed[command]), printed[command]
