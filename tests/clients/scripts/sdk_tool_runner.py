"""The Python SDK's tool runner, which lets the server hold the thread and sends only what is new."""

import anthropic
import session


@anthropic.beta_tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return session.get_weather(city)


@anthropic.beta_tool
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(session.add(a, b))


runner = anthropic.Anthropic().beta.messages.tool_runner(
    model=session.MODEL,
    max_tokens=1000,
    cache_control={"type": "ephemeral"},
    system=session.SYSTEM,
    tools=[get_weather, add],
    messages=[{"role": "user", "content": session.QUESTION}],
)
print(runner.until_done().content[-1].text)
