"""Prompts that part inside a block, on hosts that match tokens: what both begin with is read."""

from __future__ import annotations

from case_files import Run, rows_of


def reads(run_case: Run, name: str, *words: str) -> list[int]:
    rows = rows_of(run_case(name, "replay", *words, "--json"))
    return [row["usage"]["cache_read_input_tokens"] for row in rows]


def test_a_document_that_prompts_share_within_a_message_is_found(run_case: Run) -> None:
    """Four later prompts share 6,010 bytes of text and the 23 of JSON before it with the first: 377 blocks of 16."""
    assert reads(run_case, "21-shared-text-in-one-block", "vllm.jsonl", "--tokens", "bytes") == [0, *[377 * 16] * 4]


def test_all_before_a_time_at_the_end_of_the_system_prompt_is_found(run_case: Run) -> None:
    assert reads(run_case, "22-time-at-end-of-system", "log.jsonl") == [0, *[12 * 128] * 4]
