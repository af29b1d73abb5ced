"""What every scripted client is told: the model, a system prompt worth caching, one question, two harmless tools."""

MODEL = "claude-opus-5-5"
RULES = "\n".join(
    f"Rule {number}: where article {number} of the handbook applies, name it, and say in one sentence why."
    for number in range(1, 101)
)
SYSTEM = f"You are a careful assistant of the town hall.\n{RULES}"
QUESTION = "What is the weather in Berlin, and how much are 1 and 2?"
TOOLS = [
    {
        "name": "get_weather",
        "description": "The weather in a city.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
    {
        "name": "add",
        "description": "Add two numbers.",
        "input_schema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
]


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"18 degrees and dry in {city}"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def run_tool(name: str, arguments: dict) -> str:
    """The result of a tool call."""
    return str({"get_weather": get_weather, "add": add}[name](**arguments))
