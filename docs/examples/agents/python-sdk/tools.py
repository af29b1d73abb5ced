"""The tools of the agent: what the model is told about each, and what each does."""

from pathlib import Path

LIBRARY = Path(__file__).with_name("library")


def tool(name: str, description: str, **parameters: str) -> dict:
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"name": name, "description": description, "input_schema": schema}


TOOLS = [
    tool("list_files", "List the names of the library's texts, one on each line."),
    tool("read_file", "Read one of the library's texts as a whole.", path="Name of the text, as list_files gives it."),
    tool("search_files", "Find the lines that contain a word, in all texts.", word="The word; upper case is ignored."),
    tool("get_opening_hours", "Opening hours of one day of the week.", day="Name of the day in English: Monday."),
]


def list_files() -> str:
    return "\n".join(sorted(path.name for path in LIBRARY.iterdir()))


def read_file(path: str) -> str:
    place = LIBRARY / Path(path).name
    return place.read_text(encoding="utf-8") if place.is_file() else f"There is no text {path}."


def search_files(word: str) -> str:
    lines = [f"{name}: {line}" for name in list_files().split() for line in read_file(name).splitlines()]
    return "\n".join(line for line in lines if word.lower() in line.lower()) or "No line contains it."


def get_opening_hours(day: str) -> str:
    days = dict(line.split(": ") for line in read_file("opening-hours.txt").splitlines())
    return days.get(day.capitalize(), "There is no such day.")


FUNCTIONS = {
    "list_files": list_files,
    "read_file": read_file,
    "search_files": search_files,
    "get_opening_hours": get_opening_hours,
}


def run_tool(name: str, arguments: dict) -> str:
    """The result of a tool call."""
    return FUNCTIONS[name](**arguments)
