"""Three questions to whatever ANTHROPIC_BASE_URL names, with a system prompt that is marked for caching."""

import anthropic

client = anthropic.Anthropic()
system = [{"type": "text", "text": "You help with code. " * 900, "cache_control": {"type": "ephemeral"}}]
messages = []
for question in ("What is in README.md?", "And the tests?", "Thanks."):
    messages.append({"role": "user", "content": question})
    answer = client.messages.create(model="claude-sonnet-4-6", max_tokens=200, system=system, messages=messages)
    messages.append({"role": "assistant", "content": [block.model_dump() for block in answer.content]})
