"""Finds the command that starts a project's agent, for `cachecost init`: from its metadata, else by names of files."""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Sequence, Set
from functools import cached_property
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

from cachecost.base.errors import CannotEvaluate
from cachecost.base.extras import workflow_requirement
from cachecost.base.structs import value
from cachecost.conversations.readers.common.json_values import object_or_empty
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
    for folder, folders, names in os.walk(root):
        here = PurePosixPath(Path(folder).relative_to(root).as_posix())
        deeper = len(here.parts) < DEEPEST
        folders[:] = sorted(name for name in folders if deeper and name not in SKIPPED and not name.startswith("."))
        found += (here / name for name in sorted(names) if name.endswith(SUFFIXES) and not name.startswith("."))
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


NAMES = ("agent", "main", "__main__", "app", "index", "cli", "bot", "chat")
"""Names of files that start a program, the likeliest first."""
RUNNERS = frozenset(("node", "bun", "deno", "python", "python3"))
SHELL = re.compile(r"[|&;<>$`*()]")
READS_STDIN = re.compile(r"\bstdin\b|\binput\(|\breadline\b|\bfileinput\b")
READS_WORDS = re.compile(
    r"\bargv\b|\bargparse\b|\bparseArgs\b|\bimport (?:click|typer)\b|[\"'](?:commander|yargs)[\"']"
)
TURN = " {turn}"


@value
class ModelName:
    """A model, its host, and where the source names it."""

    id: str
    host: str
    file: str
    line: int


@value
class EntryPoint:
    """What starts the agent, why that, and all client libraries that the project imports.

    `model` is None where the source names none that is known. `python_path` is the folder of its packages ("": where
    it runs).
    """

    command: str
    reason: str
    libraries: tuple[str, ...]
    host: str
    model: ModelName | None
    python_path: str = ""

    @property
    def is_python(self) -> bool:
        return not self.command.startswith(("node ", "npm ", "npx ", "bun ", "deno "))


@value
class _Candidate:
    command: str
    reason: str
    source: SourceFile
    python_path: str = ""


def find_entry_point(root: Path) -> EntryPoint | None:
    """The command that starts the agent under `root`; None where no program there uses a client of a model's API."""
    sources = read_sources(root)
    using = files_that_use(sources)
    packages = {source.path.parent for source in sources if source.path.name == "__init__.py"} - {PurePosixPath()}
    candidates = [*_package_scripts(root, using), *_project_scripts(root, using), *_files(using, packages)]
    return _entry_point(candidates[0], using) if candidates else None


def _entry_point(found: _Candidate, using: Sequence[SourceFile]) -> EntryPoint:
    importing = sorted((source for source in using if source.library), key=lambda source: source is not found.source)
    library = importing[0].library or ""
    where = "" if importing[0] is found.source else f" in {importing[0].path}"
    takes_words = READS_WORDS.search(found.source.text) and not READS_STDIN.search(found.source.text)
    command = found.command + (TURN if takes_words else "")
    model = _model([found.source, *using], HOSTS[library])
    libraries = tuple(name for name in HOSTS if any(name in source.imports for source in importing))
    host = model.host if model else HOSTS[library] or "anthropic"
    reason = f"{found.reason} imports {library}{where}"
    return EntryPoint(command, reason, libraries, host, model, found.python_path)


def _model(sources: Sequence[SourceFile], host: str) -> ModelName | None:
    """The first known model that the sources name and `host` serves ("": any host)."""
    for source in sources:
        for name, maker, line in source.models():
            if host in ("", maker) and _is_known(maker, name):
                return ModelName(name, maker, str(source.path), line)
    return None


def _is_known(host: str, model: str) -> bool:
    from cachecost.providers.rules import RuleBook

    try:
        RuleBook().rules(host, model)
    except CannotEvaluate:
        return False
    return True


# ------------------------------------------------------------------------------------------------- metadata


def _package_scripts(root: Path, using: Sequence[SourceFile]) -> Iterator[_Candidate]:
    """`scripts.agent`, `scripts.start` and `bin` of package.json that name such a file."""
    package = object_or_empty(_parsed(root / "package.json", json.loads))
    scripts = object_or_empty(package.get("scripts"))
    for name in ("agent", "start"):
        script = scripts.get(name)
        if isinstance(script, str) and (source := _named_in(script, using)):
            yield _Candidate(_runnable(name, script), f"scripts.{name} of package.json: {source.path}", source)
    programs = package.get("bin")
    for path in [programs] if isinstance(programs, str) else object_or_empty(programs).values():
        if source := _named_in(str(path), using):
            yield _Candidate(f"node {source.path}", f"bin of package.json: {source.path}", source)


def _runnable(name: str, script: str) -> str:
    """The script itself where it needs neither a shell nor npm's search path; else what makes npm run it."""
    is_plain = script.split()[0] in RUNNERS and not SHELL.search(script)
    return script if is_plain else f"npm run --silent {name}"


def _named_in(words: str, sources: Sequence[SourceFile]) -> SourceFile | None:
    paths = {PurePosixPath(word.strip("\"'")) for word in words.split()}
    return next((source for source in sources if source.path in paths), None)


def _project_scripts(root: Path, using: Sequence[SourceFile]) -> Iterator[_Candidate]:
    """`[project.scripts]` of pyproject.toml whose module is such a file."""
    project = object_or_empty(object_or_empty(_parsed(root / "pyproject.toml", tomllib.loads)).get("project"))
    for name, target in object_or_empty(project.get("scripts")).items():
        if source := _module(str(target).partition(":")[0].strip(), using):
            reason = f"[project.scripts] of pyproject.toml: {source.path}"
            yield _Candidate(shlex.quote(name), reason, source)


def _module(name: str, sources: Sequence[SourceFile]) -> SourceFile | None:
    path = name.replace(".", "/")
    places = {PurePosixPath(base, f"{path}{end}") for base in ("", "src") for end in (".py", "/__init__.py")}
    return next((source for source in sources if source.path in places), None)


def _parsed(path: Path, parse: Callable[[str], Any]) -> Any:
    """A file of metadata; None where there is none, or it cannot be read."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


# ---------------------------------------------------------------------------------------------------- files


def _files(using: Sequence[SourceFile], packages: Set[PurePosixPath]) -> Iterator[_Candidate]:
    """Programs by their names, then other programs; a named file that only defines something comes last."""
    named = sorted((source for source in using if source.path.stem in NAMES), key=_likelihood)
    others = [source for source in using if source not in named and source.path.suffix == ".py"]
    programs = [source for source in (*named, *others) if source.can_start]
    for source in (*programs, *named):
        yield _file_candidate(source, packages)


def _likelihood(source: SourceFile) -> tuple[int, int]:
    return len(source.path.parts), NAMES.index(source.path.stem)


def _file_candidate(source: SourceFile, packages: Set[PurePosixPath]) -> _Candidate:
    path, quoted = source.path, shlex.quote(str(source.path))
    if path.suffix in (".js", ".mjs", ".cjs"):
        return _Candidate(f"node {quoted}", str(path), source)
    if path.suffix != ".py":
        return _Candidate(f"npx tsx {quoted}", str(path), source)
    if path.parent not in packages:
        return _Candidate(f"python {quoted}", str(path), source)
    top = source.path.parent
    while top.parent in packages:
        top = top.parent
    module = source.path.parent if source.path.stem == "__main__" else source.path.with_suffix("")
    name = ".".join(module.relative_to(top.parent).parts)
    base = "" if top.parent == PurePosixPath() else str(top.parent)
    return _Candidate(f"python -m {name}", str(source.path), source, base)


SCENARIO = "scenarios/my-agent.yaml"
RECORDING = "scenarios/recordings/my-agent.jsonl"
SCHEMA = "scenarios/scenario.schema.json"
WORKFLOW = ".github/workflows/cachecost.yml"
ABOUT = {
    SCENARIO: "the cost of a session under four strategies, and a budget",
    RECORDING: "a made-up session of 16 calls; replace it with one of yours",
    SCHEMA: "JSON Schema of scenarios, for editors",
    WORKFLOW: "checks the budget in every pull request",
}
ABOUT_AGENT = "runs your agent against a simulated API, within a budget"
PLAIN = re.compile(r"[\w./@-][\w./@ -]*")
PYTHON_STEP = """      - name: Install the agent
        run: |
          python3 -m venv "$RUNNER_TEMP/agent"
          "$RUNNER_TEMP/agent/bin/pip" install --quiet {packages}
          echo "$RUNNER_TEMP/agent/bin" >>"$GITHUB_PATH"
"""
NODE_STEP = """      - name: Install the agent
        run: npm {install}
"""
STEP = "      # @AGENT@\n"


def starting_files(folder: Path, agent: EntryPoint | None) -> dict[str, str]:
    """The text of each file by its path from the project root, `folder`; `agent` is what was found there."""
    from cachecost.scenario.models import schema_text

    recording = {} if agent else {RECORDING: _shipped("my-agent.jsonl")}
    return {
        SCENARIO: _agent_scenario(agent) if agent else _shipped("my-agent.yaml"),
        **recording,
        SCHEMA: schema_text(),
        WORKFLOW: _workflow(_agent_step(folder, agent) if agent else ""),
    }


def _shipped(name: str) -> str:
    return files("cachecost.commands.templates").joinpath(name).read_text(encoding="utf-8")


def _workflow(agent_step: str) -> str:
    return _shipped("cachecost.yml").replace("@CACHECOST@", workflow_requirement()).replace(STEP, agent_step)


def _agent_scenario(agent: EntryPoint) -> str:
    command = agent.command if PLAIN.fullmatch(agent.command) else json.dumps(agent.command, ensure_ascii=False)
    environment = f"\n  env: {{PYTHONPATH: {json.dumps(agent.python_path)}}}" if agent.python_path else ""
    values = {
        "@HOST@": agent.host,
        "@MODEL@": f"\nmodel: {agent.model.id}" if agent.model else "",
        "@COMMAND@": command,
        "@ENVIRONMENT@": environment,
        "@HOW@": ", each in a run of its own" if agent.command.endswith(TURN) else ", a line each on stdin",
    }
    text = _shipped("agent.yaml")
    for name, filled in values.items():
        text = text.replace(name, filled)
    return text


def _agent_step(folder: Path, agent: EntryPoint) -> str:
    if not agent.is_python:
        return NODE_STEP.format(install="ci" if (folder / "package-lock.json").exists() else "install")
    if (folder / "requirements.txt").exists():
        return PYTHON_STEP.format(packages="-r requirements.txt")
    if (folder / "pyproject.toml").exists():
        return PYTHON_STEP.format(packages=".")
    return PYTHON_STEP.format(packages=" ".join(re.sub(r"[._]", "-", name) for name in agent.libraries))
