"""Random billed calls: nothing about them need make sense, but that a call continues an earlier one of its file."""

from __future__ import annotations

from random import Random
from typing import Any

from cachecost.conversations.input_files import EVENTS, BilledCall, SessionFile, ToolResults, pack_results

START = 1_772_445_600.0
MODELS = ("claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5", "nobody-1")
TOOLS = ("Read", "Bash", "Skill pdf", "Skill", "mcp__docs__search", "mcp__docs__get__page", "mcp__x")
COUNTS = (0, 0, 1, 3, 100, 20_000, 20_002, 20_003, 150_000)


def random_files(random: Random, are_timed: bool = False) -> list[SessionFile]:
    """One to three files of one to five calls; some calls are in several."""
    shared: list[BilledCall] = []
    files = []
    for number in range(random.choice((1, 1, 2, 2, 3))):
        calls = [random_call(random, at, are_timed) for at in range(1, random.randint(2, 6))]
        for call in calls:
            if shared and random.random() < 0.3:
                _copy(random, random.choice(shared), call)
        shared += [call for call in calls if call.id]
        file = SessionFile(f"{number}.jsonl", "claude-code", random.choice(("shop", "cli")), calls)
        if random.random() < 0.8:
            file.results = pack_results([_results(random, call) for call in calls if random.random() < 0.7])
        file.branches = tuple((call.number, random.choice(("main", "fix", ""))) for call in calls)
        file.pull_requests = tuple(("s", START + random.randint(0, 90_000), f"#{one}") for one in range(2))
        files.append(file)
    return files


def _results(random: Random, call: BilledCall) -> ToolResults:
    sizes = [(random.choice(TOOLS), random.choice(COUNTS)) for _ in range(random.randint(1, 3))]
    return ToolResults(call.number, sum(size for _, size in sizes) + random.choice(COUNTS), sizes)


def random_call(random: Random, number: int, are_timed: bool) -> BilledCall:
    start = START + random.choice((0, 1, 200, 299.9, 300, 3599.9, 3600, 90_000)) + random.randint(0, 900)
    has_time = are_timed or random.random() < 0.9
    flags: dict[str, Any] = {"has_thinking": random.random() < 0.3, "is_summed": random.random() < 0.1}
    return BilledCall(
        number,
        number,
        random.choice(MODELS),
        _tokens(random),
        start if has_time else None,
        before=random.choice((number - 1, random.randint(0, number - 1))),
        events=tuple(random.sample(list(EVENTS), random.choice((0, 0, 0, 1, 2)))),
        agent=random.choice(("", "", "a1", "a2")),
        session=random.choice(("s", "s", "t", "")),
        id=random.choice(("", f"msg {random.random()}")),
        version=random.choice(("2.1.0", "2.1.0", "2.1.1", "")),
        modes=random.choice(((), (), ("fast",), ("batch",), ("us",))),
        blocks=random.randint(0, 30),
        new_chars=random.choice(COUNTS),
        miss_reason=random.choice(("", "", "tools_changed", "unavailable")),
        extra=random.choice(((), (), (("", _tokens(random)),), (("nobody-2", _tokens(random)),))),
        answered=start + random.choice((1, 5)) if has_time else None,
        agent_type=random.choice(("", "Explore")),
        **flags,
    )


def _tokens(random: Random) -> tuple[int, int, int, int, int]:
    return tuple(random.choices(COUNTS, k=5))  # type: ignore[return-value]


def _copy(random: Random, original: BilledCall, call: BilledCall) -> None:
    """Make a call a copy of another; its last line, with the larger output, may be in one of them only."""
    call.id, call.start, call.model, call.modes = original.id, original.start, original.model, original.modes
    call.tokens = (*original.tokens[:4], original.tokens[4] + random.choice((0, 0, 5)))
    call.extra, call.is_summed = original.extra, original.is_summed
