"""The source files of a project as text, for `cachecost init`: which of them use a model's API, and which model."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath

from cachecost.providers.hosts import maker_of

SUFFIXES = (".py", ".ts", ".mts", ".tsx", ".js", ".mjs", ".cjs")
SKIPPED = (
    *("node_modules", "site-packages", "venv", "env", "__pycache__", "dist", "build", "target", "vendor", "coverage"),
    *("test", "tests", "docs", "examples"),
)
"""Folders that are not read, nor those whose name begins with a dot."""
DEEPEST, MOST_FILES, MOST_BYTES = 5, 2_000, 200_000
"""How many folders deep, how many source files, and how many bytes of each are read."""
LIBRARIES = {
    "anthropic": (
        *("anthropic", "langchain_anthropic", "claude_agent_sdk"),
        *("@anthropic-ai/sdk", "@anthropic-ai/claude-agent-sdk", "@langchain/anthropic", "@ai-sdk/anthropic"),
    ),
    "openai": ("openai", "langchain_openai", "@openai/agents", "@langchain/openai", "@ai-sdk/openai"),
    "gemini": ("google.genai", "langchain_google_genai", "@google/genai", "@langchain/google-genai"),
    "": ("langchain", "langgraph", "litellm", "pydantic_ai", "@langchain/core", "@langchain/langgraph"),
}
"""Client libraries by the host that they call; "" where the model decides."""
HOSTS = {name: host for host, names in LIBRARIES.items() for name in names}
PYTHON_IMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+import\s+([\w, ]+)|import\s+([\w.]+))", re.M)
SCRIPT_IMPORT = re.compile(r"""(?:\bfrom|\brequire\(|\bimport\(?)\s*["']([^"'\n]+)["']""")
MODEL = re.compile(r"""["'`](?:[a-z_]+[/:])?((?:claude|gpt|gemini)-[\w.-]+|o[134](?:-[a-z]+)?)["'`]""")
STARTS = re.compile(r"__name__\s*==\s*[\"']__main__|\bsys\.stdin\b|\binput\(|\bsys\.argv\b|\bargparse\b")


class SourceFile:
    """A source file by its path from the project's root, and its text."""

    def __init__(self, path: PurePosixPath, text: str) -> None:
        self.path, self.text = path, text

    @cached_property
    def imports(self) -> frozenset[str]:
        """What it imports: of `google.genai.types` its parents too, of `@scope/name/part` the package too."""
        return frozenset(self._python_imports() if self.path.suffix == ".py" else self._script_imports())

    def _python_imports(self) -> Iterator[str]:
        for package, names, module in PYTHON_IMPORT.findall(self.text):
            for name in re.findall(r"\w+", names) or [""]:
                parts = f"{package}.{name}".split(".") if package else module.split(".")
                yield from (".".join(parts[:length]) for length in range(1, len(parts) + 1))

    def _script_imports(self) -> Iterator[str]:
        for name in SCRIPT_IMPORT.findall(self.text):
            yield name
            yield "/".join(name.split("/")[: 2 if name.startswith("@") else 1])

    @property
    def library(self) -> str | None:
        """A client library that it imports, the most particular one; None: it imports none."""
        return next((name for name in HOSTS if name in self.imports), None)

    @property
    def can_start(self) -> bool:
        """Whether it looks like a program: of Python, by its main guard or its reading of input."""
        return self.path.suffix != ".py" or self.path.name == "__main__.py" or bool(STARTS.search(self.text))

    def names_module(self, other: SourceFile) -> bool:
        """Whether one of its imports ends with the other's name."""
        stem = other.path.parent.name if other.path.stem in ("__init__", "index") else other.path.stem
        return any(re.split(r"[./]", name.removesuffix(".js"))[-1] == stem for name in self.imports)

    def models(self) -> Iterator[tuple[str, str, int]]:
        """Every name of a model that stands in quotes, with its maker's host and its line."""
        for found in MODEL.finditer(self.text):
            yield found[1], maker_of(found[1]), self.text.count("\n", 0, found.start()) + 1


def read_sources(root: Path) -> list[SourceFile]:
    """The source files under `root`, those near the root first. Links are not followed; nothing is executed."""
    read = ((path, _text(root / path)) for path in sorted(_paths(root), key=lambda path: (len(path.parts), path)))
    return [SourceFile(path, text) for path, text in read if text is not None]


def _paths(root: Path) -> list[PurePosixPath]:
    found: list[PurePosixPath] = []
    for folder, folders, files in os.walk(root):
        here = PurePosixPath(Path(folder).relative_to(root).as_posix())
        deeper = len(here.parts) < DEEPEST
        folders[:] = sorted(name for name in folders if deeper and name not in SKIPPED and not name.startswith("."))
        found += (here / name for name in sorted(files) if name.endswith(SUFFIXES) and not name.startswith("."))
        if len(found) >= MOST_FILES:
            break
    return found[:MOST_FILES]


def _text(path: Path) -> str | None:
    """The beginning of a file; None where it is a link or cannot be read."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        with path.open("rb") as stream:
            return stream.read(MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def files_that_use(sources: Sequence[SourceFile]) -> list[SourceFile]:
    """The files that import a client library, themselves or through other files of the project."""
    found = {source.path: source for source in sources if source.library}
    newest = list(found.values())
    while newest:
        others = (source for source in sources if source.path not in found)
        newest = [source for source in others if any(source.names_module(one) for one in newest)]
        found |= {source.path: source for source in newest}
    return [source for source in sources if source.path in found]
