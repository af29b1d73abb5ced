"""The tools of the agent. LangChain tells the model the name, the docstring and the parameters of each."""

from pathlib import Path
from typing import Annotated

LIBRARY = Path(__file__).with_name("library")


def list_files() -> str:
    """List the names of the library's texts, one on each line."""
    return "\n".join(sorted(path.name for path in LIBRARY.iterdir()))


def read_file(path: Annotated[str, "Name of the text, as list_files gives it."]) -> str:
    """Read one of the library's texts as a whole."""
    place = LIBRARY / Path(path).name
    return place.read_text(encoding="utf-8") if place.is_file() else f"There is no text {path}."


def search_files(word: Annotated[str, "The word; upper case is ignored."]) -> str:
    """Find the lines that contain a word, in all texts."""
    lines = [f"{name}: {line}" for name in list_files().split() for line in read_file(name).splitlines()]
    return "\n".join(line for line in lines if word.lower() in line.lower()) or "No line contains it."


def get_opening_hours(day: Annotated[str, "Name of the day in English: Monday."]) -> str:
    """Opening hours of one day of the week."""
    days = dict(line.split(": ") for line in read_file("opening-hours.txt").splitlines())
    return days.get(day.capitalize(), "There is no such day.")


TOOLS = [list_files, read_file, search_files, get_opening_hours]
