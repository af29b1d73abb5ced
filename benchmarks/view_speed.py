"""How a session of 20,000 calls opens and zooms in `cachecost view`, in the system's Chromium.

    python -m benchmarks.view_speed [--calls 20000] [--runs 3] [--json]

One transcript is written, served and opened. Shown are, as the least of all runs:

- the processor time of the server until it listens, and of its answer with all calls;
- the busy time of the page's main thread from the click to the painted timeline, and how often in that time the page
  could parse that answer as JSON: machines differ in the first and hardly in the second;
- the longest tasks while the timeline is zoomed and panned by wheel and keys, and while the pages of calls are turned;
  from 100 ms on a person feels them;
- the heap of the page after a garbage collection.

What the machine does besides is in the figures of the page: they are to be taken on a quiet one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.pages import ViewServer, find_chromium, running_browser, running_view

if TYPE_CHECKING:
    from playwright.sync_api import Browser, CDPSession, Page

SESSION = "2e0816ef-0000-4000-8000-000000000001"
BEGIN = datetime(2026, 10, 1, 8, tzinfo=UTC)
MODEL = "claude-opus-5-5"
STATIC, FULL = 21_000, 160_000
"""Tokens of tools and system prompt, and of the prompt at which the history is compacted."""
TICKS_PER_SECOND = 100
LONG_MS = 100.0
WATCH = """() => {
    window.longTasks = [];
    new PerformanceObserver(list => longTasks.push(...list.getEntries().map(entry => entry.duration)))
        .observe({type: 'longtask'});
}"""
PARSE = """async path => {
    const text = await (await fetch(path)).text();
    const times = Array.from({length: 5}, () => {
        const start = performance.now();
        JSON.parse(text);
        return performance.now() - start;
    });
    return [Math.min(...times), text.length];
}"""


@dataclass(frozen=True, slots=True)
class ViewCost:
    """What opening and zooming took. Times of the server are processor time, of the page busy time."""

    calls: int
    server_start_s: float
    server_answer_s: float
    answer_mib: float
    open_busy_s: float
    open_in_parses: float
    open_wall_s: float
    longest_opening_ms: float
    longest_zooming_ms: float
    long_zooming: int
    longest_paging_ms: float
    heap_mib: float


def write_transcript(path: Path, calls: int) -> Path:
    """A session with so many calls: a message of a person every 20, a pause every 500, a compaction when it is full."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in _lines(calls))
    return path


def _lines(calls: int) -> Iterator[dict[str, Any]]:
    now, cached, parent = BEGIN, 0, None
    size = STATIC
    for number in range(calls):
        is_human, is_pause = number % 20 == 0, number % 500 == 499
        now += timedelta(seconds=900 if is_pause else 9)
        if size > FULL:
            size = STATIC + 6_000
            cached = STATIC
            yield _line(now, "system", f"c{number}", None, subtype="compact_boundary", content="Conversation compacted")
        asked = f"Question {number}" if is_human else [_result(number)]
        yield _line(now, "user", f"u{number}", parent, message={"role": "user", "content": asked})
        size += 300 + number * 7919 % 1_400
        read = 0 if is_pause else cached
        yield _line(now + timedelta(seconds=4), "assistant", f"a{number}", f"u{number}", requestId=f"req_{number}",
                    message=_answer(number, read, size - read))  # fmt: skip
        cached, parent = size, f"a{number}"


def _line(at: datetime, kind: str, uuid: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    common = {"sessionId": SESSION, "cwd": "/work/shop", "version": "2.1.276", "isSidechain": False}
    stamp = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "timestamp": stamp, **common, **fields}


def _result(number: int) -> dict[str, str]:
    return {"type": "tool_result", "tool_use_id": f"toolu_{number - 1}", "content": f"{number} files were read. " * 20}


def _answer(number: int, read: int, written: int) -> dict[str, Any]:
    usage = {"input_tokens": 3, "cache_read_input_tokens": read, "cache_creation_input_tokens": written,
             "cache_creation": {"ephemeral_5m_input_tokens": written}, "output_tokens": 100 + number % 300}  # fmt: skip
    content = [{"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"path": f"src/{number}.py"}}]
    return {"id": f"msg_{number}", "role": "assistant", "model": MODEL, "content": content, "usage": usage}


def processor_seconds(pid: int) -> float:
    """What a process has used so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def measure(browser: Browser, server: ViewServer, calls: int) -> ViewCost:
    """Open the session once, zoom and turn pages."""
    started = processor_seconds(server.pid)
    page = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page.set_default_timeout(60_000)
    try:
        page.goto(server.address)
        page.wait_for_selector(".sessions .body a")
        devices = page.context.new_cdp_session(page)
        devices.send("Performance.enable")
        page.evaluate(WATCH)
        busy, wall = _open(page, devices)
        opening = _longest(page)
        answered = processor_seconds(server.pid)
        zooming = _zoom(page)
        paging = _turn_pages(page)
        devices.send("HeapProfiler.collectGarbage")
        heap = _metric(devices, "JSHeapUsedSize")
        parse_ms, size = page.evaluate(PARSE, f"api/session/{SESSION}")
    finally:
        page.close()
    return ViewCost(calls, round(started, 2), round(answered - started, 2), round(size / 2**20, 1), round(busy, 3),
                    round(busy * 1_000 / parse_ms, 1), round(wall, 2), max(opening, default=0.0),
                    max(zooming, default=0.0), sum(task >= LONG_MS for task in zooming), max(paging, default=0.0),
                    round(heap / 2**20, 1))  # fmt: skip


def _open(page: Page, devices: CDPSession) -> tuple[float, float]:
    """From the click to the painted timeline: busy seconds of the main thread, seconds."""
    before, start = _metric(devices, "TaskDuration"), _metric(devices, "Timestamp")
    page.click(".sessions .body a")
    page.wait_for_selector(".timeline .row canvas")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return _metric(devices, "TaskDuration") - before, _metric(devices, "Timestamp") - start


def _metric(devices: CDPSession, name: str) -> float:
    metrics = devices.send("Performance.getMetrics")["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == name))


def _zoom(page: Page) -> list[float]:
    box = page.locator(".plot").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2)
    for step in [-240] * 20 + [160] * 20 + [-240] * 10:
        page.mouse.wheel(0, step)
        _wait_a_frame(page)
    for key in ["PageDown", "n", "n", "p", "ArrowRight", "-", "+", "0", "n", "End", "Home"] * 3:
        page.focus(".plot")
        page.keyboard.press(key)
        _wait_a_frame(page)
    return _longest(page)


def _turn_pages(page: Page) -> list[float]:
    """Open a call in the middle and go on from it."""
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.wait_for_selector(".call .blocks, .call .prompt, .call p.muted")
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
        page.wait_for_timeout(250)
    return _longest(page)


def _wait_a_frame(page: Page) -> None:
    page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")


def _longest(page: Page) -> list[float]:
    """The long tasks since they were asked for; they are reported a moment after they end."""
    page.wait_for_timeout(150)
    return [float(task) for task in page.evaluate("longTasks.splice(0)")]


def least(costs: list[ViewCost]) -> ViewCost:
    """The least of each figure."""
    fields = asdict(costs[0])
    return ViewCost(**{name: min(getattr(cost, name) for cost in costs) for name in fields})


def report(cost: ViewCost) -> Iterator[str]:
    yield f"{cost.calls:,} calls, {cost.answer_mib} MiB of JSON"
    yield f"server   {cost.server_start_s:.2f} s until it listens, {cost.server_answer_s:.2f} s for what the page asks"
    yield (
        f"opening  {cost.open_busy_s:.3f} s of the main thread ({cost.open_in_parses} × JSON.parse of the answer), "
        f"{cost.open_wall_s:.2f} s until painted, longest task {cost.longest_opening_ms:.0f} ms"
    )
    yield f"zooming  longest task {cost.longest_zooming_ms:.0f} ms, {cost.long_zooming} of 100 ms or more"
    yield f"a call   longest task {cost.longest_paging_ms:.0f} ms"
    yield f"heap     {cost.heap_mib} MiB"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    chromium = find_chromium()
    if chromium is None:
        sys.exit("no Chromium here: .ci/browser installs one where it can")
    with tempfile.TemporaryDirectory() as folder:
        log = write_transcript(Path(folder) / "work" / f"{SESSION}.jsonl", options.calls)
        costs = []
        for _ in range(options.runs):
            with running_view(log.parent) as server, running_browser(chromium) as browser:
                costs.append(measure(browser, server, options.calls))
    cost = least(costs)
    print(json.dumps(asdict(cost))) if options.json else print("\n".join(report(cost)))


if __name__ == "__main__":
    main()
