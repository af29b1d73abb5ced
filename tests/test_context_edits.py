"""Context editing: cleared results and thinking change the prompt from the first cleared block on."""

from __future__ import annotations

from bodies import Body, Engine, assistant, body, breakpoint_last, text, thinking, tool_result, tool_use, user
from cachecost.prompts.render import PLACEHOLDER_TOKENS

CLEARED = PLACEHOLDER_TOKENS * 4
START = user(text(2000, "go"))


def loop(calls: int, **edit: object) -> Body:
    """A tool loop with a result of 1,000 tokens a call, under one edit."""
    messages = [START]
    for number in range(calls):
        messages += [assistant(tool_use(90, f"t{number}")), user(tool_result(1000, f"t{number}"))]
    return breakpoint_last(body(*messages, context_management={"edits": [edit]}))


def clear(trigger: int, keep: int = 1) -> dict[str, object]:
    return {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": trigger},
        "keep": {"type": "tool_uses", "value": keep},
    }


def test_below_its_trigger_nothing_is_cleared() -> None:
    engine = Engine()
    engine.call(loop(2, **clear(10_000)))
    outcome = engine.call(loop(3, **clear(10_000)))
    assert (outcome.read, outcome.write_5m) == (2000 + 2 * 1090, 1090)


def test_from_its_trigger_on_old_results_are_placeholders_and_what_follows_is_written_again() -> None:
    engine = Engine()
    engine.call(breakpoint_last(body(START)))
    engine.call(loop(2, **clear(5000)))
    outcome = engine.call(loop(3, **clear(5000)))
    assert (outcome.read, outcome.write_5m) == (2000, 2 * (90 + CLEARED) + 1090)


def test_the_trigger_itself_is_enough_and_one_token_less_is_not() -> None:
    length = 2000 + 3 * 1090
    assert Engine().call(loop(3, **clear(length))).write_5m < length
    assert Engine().call(loop(3, **clear(length + 1))).write_5m == length


def test_a_trigger_by_tool_uses() -> None:
    by_uses = {**clear(0), "trigger": {"type": "tool_uses", "value": 3}}
    assert Engine().call(loop(2, **by_uses)).write_5m == 2000 + 2 * 1090
    assert Engine().call(loop(3, **by_uses)).write_5m == 2000 + 2 * (90 + CLEARED) + 1090


def conversation(keep: object) -> Body:
    turns = []
    for number in range(3):
        turns += [user(text(700, f"q{number}")), assistant(thinking(300, f"r{number}"), text(200, f"a{number}"))]
    edit = {"type": "clear_thinking_20251015", "keep": keep}
    return breakpoint_last(body(*turns, user(text(100)), context_management={"edits": [edit]}))


def test_thinking_of_all_but_the_last_turns_is_cleared() -> None:
    whole = 3 * 1200 + 100
    assert Engine().call(conversation("all")).write_5m == whole
    for kept in (1, 2, 3):
        outcome = Engine().call(conversation({"type": "thinking_turns", "value": kept}))
        assert outcome.write_5m == whole - (3 - kept) * 300


def test_a_breakpoint_behind_cleared_thinking_stays_on_its_block() -> None:
    marked_answer = {**text(2000, "a"), "cache_control": {"type": "ephemeral"}}
    messages = [user(text(700)), assistant(thinking(300), marked_answer), user(text(50)), assistant(thinking(300))]
    edit = {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}
    outcome = Engine().call(body(*messages, user(text(60)), context_management={"edits": [edit]}))
    assert (outcome.write_5m, outcome.uncached) == (2700, 50 + 300 + 60)


SUMMARY = {"type": "compaction", "content": "what was said so far " * 100}


def test_nothing_before_a_compaction_block_counts() -> None:
    engine = Engine()
    long = [START, assistant(text(3000, "a")), user(text(500))]
    short = engine.call(breakpoint_last(body(assistant(SUMMARY), user(text(400, "next")))))
    outcome = engine.call(breakpoint_last(body(*long, assistant(SUMMARY), user(text(400, "next")))))
    assert outcome.read == short.write_5m and outcome.write_5m == 0


def test_the_last_compaction_block_of_a_message_counts_and_breakpoints_before_it_are_gone() -> None:
    marked_start = user({**text(2000, "go"), "cache_control": {"type": "ephemeral"}})
    answer = assistant(text(300), SUMMARY, text(1500, "kept"))
    outcome = Engine().call(breakpoint_last(body(marked_start, answer, user(text(100)))))
    alone = Engine().call(breakpoint_last(body(assistant(SUMMARY, text(1500, "kept")), user(text(100)))))
    assert outcome.write_5m == alone.write_5m and len(outcome.breakpoints) == 1


def test_after_compaction_the_head_is_still_read() -> None:
    engine = Engine()
    head = {"system": [{**text(1500, "system"), "cache_control": {"type": "ephemeral"}}]}
    engine.call(breakpoint_last(body(START, **head)))
    outcome = engine.call(breakpoint_last(body(START, assistant(SUMMARY), user(text(100)), **head)))
    assert outcome.read == 1500
