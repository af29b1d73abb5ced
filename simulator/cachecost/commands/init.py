"""`cachecost init`: a scenario and a CI workflow in the current project; the agent that it runs is looked for."""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from functools import cached_property
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

import click
import msgspec

from cachecost.base.errors import CannotEvaluate, ExitCode, Fault, InputError
from cachecost.base.extras import PLACEHOLDER, workflow_requirement
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
NAMES = ("agent", "main", "__main__", "app", "index", "cli", "bot", "chat")
"""Names of files that start a program, the likeliest first."""
RUNNERS = frozenset(("node", "bun", "deno", "python", "python3"))
SHELL = re.compile(r"[|&;<>$`*()]")
READS_STDIN = re.compile(r"\bstdin\b|\binput\(|\breadline\b|\bfileinput\b")
READS_WORDS = re.compile(
    r"\bargv\b|\bargparse\b|\bparseArgs\b|\bimport (?:click|typer)\b|[\"'](?:commander|yargs)[\"']"
)
TURN = " {turn}"
NEW = ".cachecost-new"
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
NEXT = """
Next:
{cd}  cachecost run {scenario}
  cachecost check --update          writes reports/my-agent/baseline.json; commit it with the rest
  cachecost check                   what CI runs; exit code 1 if a budget is exceeded

Then use a session of your own: point your agent at `cachecost record`, or import its log with
  cachecost import LOG -o {recording} --content digest     (stores no text)

No agent was found: no program here imports anthropic, openai, google.genai, langchain or the like. To have `check` run
yours, write `command: python agent.py` in place of `recording:` in {scenario}.
"""
NEXT_AGENT = """
Agent: {command}   ({reason})
Model: {model}

Next:
{cd}  cachecost check --update          runs the agent, writes reports/my-agent/; commit it with the rest
  cachecost check                   what CI runs; exit code 1 if a budget is exceeded

If the agent starts in another way, change `command` and `turns` in {scenario}.
"""

NO_SOURCE = """
{workflow} cannot know yet where to install cachecost from: this copy came from a folder or file of
this machine. Write the address of a repository that has it, and a commit, in place of REPOSITORY and COMMIT.
"""


class SourceFile:
    """A source file by its path from the project's root, and its text."""

    def __init__(self, path: PurePosixPath, text: str) -> None:
        self.path, self.text = path, text

    @cached_property
    def imports(self) -> frozenset[str]:
        """What it imports: of `google.genai.types` its parents too, of `@scope/name/part` the package too."""
        if self.path.suffix != ".py":
            names = SCRIPT_IMPORT.findall(self.text)
            return frozenset(names) | {"/".join(name.split("/")[: 1 + name.startswith("@")]) for name in names}
        found = set()
        for package, names, module in PYTHON_IMPORT.findall(self.text):
            for name in re.findall(r"\w+", names) or [""]:
                parts = f"{package}.{name}".split(".") if package else module.split(".")
                found |= {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
        return frozenset(found)

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
    found: list[PurePosixPath] = []
    for folder, folders, names in os.walk(root):
        here = PurePosixPath(Path(folder).relative_to(root).as_posix())
        deeper = len(here.parts) < DEEPEST
        folders[:] = sorted(name for name in folders if deeper and name not in SKIPPED and not name.startswith("."))
        found += (here / name for name in sorted(names) if name.endswith(SUFFIXES) and not name.startswith("."))
        if len(found) >= MOST_FILES:
            break
    sources = []
    for path in sorted(found[:MOST_FILES], key=lambda path: (len(path.parts), path)):
        with suppress(OSError):
            if (root / path).is_file() and not (root / path).is_symlink():
                with (root / path).open("rb") as stream:
                    sources.append(SourceFile(path, stream.read(MOST_BYTES).decode("utf-8", "replace")))
    return sources


def files_that_use(sources: Sequence[SourceFile]) -> list[SourceFile]:
    """The files that import a client library, themselves or through other files of the project."""
    found = {source.path: source for source in sources if source.library}
    newest = list(found.values())
    while newest:
        others = (source for source in sources if source.path not in found)
        newest = [source for source in others if any(source.names_module(one) for one in newest)]
        found |= {source.path: source for source in newest}
    return [source for source in sources if source.path in found]


class ModelName(msgspec.Struct, frozen=True):
    """A model, its host, and where the source names it."""

    id: str
    host: str
    file: str
    line: int


class EntryPoint(msgspec.Struct, frozen=True):
    """What starts the agent, why that, and all client libraries that the project imports. `model` is None where the
    source names none that is known; `python_path` is the folder of its packages ("": where it runs)."""

    command: str
    reason: str
    libraries: tuple[str, ...]
    host: str
    model: ModelName | None
    python_path: str = ""

    @property
    def is_python(self) -> bool:
        return not self.command.startswith(("node ", "npm ", "npx ", "bun ", "deno "))


class _Candidate(msgspec.Struct, frozen=True):
    command: str
    reason: str
    source: SourceFile
    python_path: str = ""


def find_entry_point(root: Path) -> EntryPoint | None:
    """The command that starts the agent under `root`; None where no program there uses a client of a model's API."""
    sources = read_sources(root)
    using = files_that_use(sources)
    packages = {source.path.parent for source in sources if source.path.name == "__init__.py"} - {PurePosixPath()}
    candidates = [*_named_scripts(root, using), *_programs(using, packages)]
    if not candidates:
        return None
    found = candidates[0]
    importing = sorted((source for source in using if source.library), key=lambda source: source is not found.source)
    library = importing[0].library or ""
    where = "" if importing[0] is found.source else f" in {importing[0].path}"
    takes_words = READS_WORDS.search(found.source.text) and not READS_STDIN.search(found.source.text)
    command = found.command + (TURN if takes_words else "")
    model = _find_model([found.source, *using], HOSTS[library])
    libraries = tuple(name for name in HOSTS if any(name in source.imports for source in importing))
    host = model.host if model else HOSTS[library] or "anthropic"
    reason = f"{found.reason} imports {library}{where}"
    return EntryPoint(command, reason, libraries, host, model, found.python_path)


def _find_model(sources: Sequence[SourceFile], host: str) -> ModelName | None:
    """The first known model that the sources name and `host` serves ("": any host)."""
    from cachecost.providers.rules import RuleBook

    for source in sources:
        for name, maker, line in source.models():
            if host in ("", maker):
                with suppress(CannotEvaluate):
                    RuleBook().rules(maker, name)
                    return ModelName(name, maker, str(source.path), line)
    return None


def _named_scripts(root: Path, using: Sequence[SourceFile]) -> Iterator[_Candidate]:
    """Such files that `scripts.agent`, `scripts.start` and `bin` of package.json or pyproject.toml's scripts name."""
    package = object_or_empty(_parsed(root / "package.json", json.loads))
    scripts = object_or_empty(package.get("scripts"))
    for name in ("agent", "start"):
        script = scripts.get(name)
        if isinstance(script, str) and (source := _named_in(script, using)):
            # the script itself where it needs neither a shell nor npm's search path
            is_plain = script.split()[0] in RUNNERS and not SHELL.search(script)
            command = script if is_plain else f"npm run --silent {name}"
            yield _Candidate(command, f"scripts.{name} of package.json: {source.path}", source)
    programs = package.get("bin")
    for path in [programs] if isinstance(programs, str) else object_or_empty(programs).values():
        if source := _named_in(str(path), using):
            yield _Candidate(f"node {source.path}", f"bin of package.json: {source.path}", source)
    project = object_or_empty(object_or_empty(_parsed(root / "pyproject.toml", tomllib.loads)).get("project"))
    for name, target in object_or_empty(project.get("scripts")).items():
        path = str(target).partition(":")[0].strip().replace(".", "/")
        places = {PurePosixPath(base, f"{path}{end}") for base in ("", "src") for end in (".py", "/__init__.py")}
        if source := next((source for source in using if source.path in places), None):
            reason = f"[project.scripts] of pyproject.toml: {source.path}"
            yield _Candidate(shlex.quote(name), reason, source)


def _named_in(words: str, sources: Sequence[SourceFile]) -> SourceFile | None:
    paths = {PurePosixPath(word.strip("\"'")) for word in words.split()}
    return next((source for source in sources if source.path in paths), None)


def _parsed(path: Path, parse: Callable[[str], Any]) -> Any:
    """A file of metadata; None where there is none, or it cannot be read."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def _programs(using: Sequence[SourceFile], packages: Set[PurePosixPath]) -> Iterator[_Candidate]:
    """Programs by their names, then other programs; a named file that only defines something comes last."""
    named = [source for source in using if source.path.stem in NAMES]
    named.sort(key=lambda source: (len(source.path.parts), NAMES.index(source.path.stem)))
    others = [source for source in using if source not in named and source.path.suffix == ".py"]
    for source in (*(one for one in (*named, *others) if one.can_start), *named):
        path, quoted, base = source.path, shlex.quote(str(source.path)), ""
        if path.suffix in (".js", ".mjs", ".cjs"):
            command = f"node {quoted}"
        elif path.suffix != ".py":
            command = f"npx tsx {quoted}"
        elif path.parent not in packages:
            command = f"python {quoted}"
        else:
            top = path.parent
            while top.parent in packages:
                top = top.parent
            module = path.parent if path.stem == "__main__" else path.with_suffix("")
            command = f"python -m {'.'.join(module.relative_to(top.parent).parts)}"
            base = "" if top.parent == PurePosixPath() else str(top.parent)
        yield _Candidate(command, str(path), source, base)


def starting_files(folder: Path, agent: EntryPoint | None) -> dict[str, str]:
    """The text of each file by its path from the project root, `folder`; `agent` is what was found there."""
    from cachecost.scenario.models import schema_text

    scenario = _shipped("agent.yaml" if agent else "my-agent.yaml")
    if agent:
        command = agent.command if PLAIN.fullmatch(agent.command) else json.dumps(agent.command, ensure_ascii=False)
        values = {
            "@HOST@": agent.host,
            "@MODEL@": f"\nmodel: {agent.model.id}" if agent.model else "",
            "@COMMAND@": command,
            "@ENVIRONMENT@": f"\n  env: {{PYTHONPATH: {json.dumps(agent.python_path)}}}" if agent.python_path else "",
            "@HOW@": ", each in a run of its own" if agent.command.endswith(TURN) else ", a line each on stdin",
        }
        for name, filled in values.items():
            scenario = scenario.replace(name, filled)
    recording = {} if agent else {RECORDING: _shipped("my-agent.jsonl")}
    workflow = _shipped("cachecost.yml").replace("@CACHECOST@", workflow_requirement())
    if agent is None:
        step = ""
    elif not agent.is_python:
        step = NODE_STEP.format(install="ci" if (folder / "package-lock.json").exists() else "install")
    else:
        named = {"requirements.txt": "-r requirements.txt", "pyproject.toml": "."}
        libraries = " ".join(re.sub(r"[._]", "-", name) for name in agent.libraries)
        packages = next((words for name, words in named.items() if (folder / name).exists()), libraries)
        step = PYTHON_STEP.format(packages=packages)
    return {
        SCENARIO: scenario,
        **recording,
        SCHEMA: schema_text(),
        WORKFLOW: workflow.replace("      # @AGENT@\n", step),
    }


def _shipped(name: str) -> str:
    return files("cachecost.commands.templates").joinpath(name).read_text(encoding="utf-8")


@click.command()
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def init(folder: Path, force: bool) -> int:
    """Write a scenario and a GitHub workflow to DIR (default: the current folder).

    The scenario runs the agent of DIR: a script of package.json or pyproject.toml, or a file like agent.py that
    imports a client of a model's API. Files are only read, nothing is executed. If there is none, a small recording is
    written in its place. If any of the files exists, nothing is written unless --force is given.
    """
    agent = find_entry_point(folder)
    contents = starting_files(folder, agent)
    if not force and (there := [folder / name for name in contents if os.path.lexists(folder / name)]):
        raise InputError([Fault(str(path), "exists already; overwrite it with --force") for path in there])
    write_all(folder, contents)
    about = ABOUT | ({SCENARIO: "runs your agent against a simulated API, within a budget"} if agent else {})
    for name in contents:
        click.echo(f"{folder / name!s:<40} {about[name]}")
    cd = "" if folder == Path() else f"  cd {folder}\n"
    if agent:
        found = agent.model
        where = f"{found.id}   ({found.file}:{found.line})" if found else ""
        model = where or "that of its first call; the source names none"
        words = NEXT_AGENT.format(command=agent.command, reason=agent.reason, model=model, cd=cd, scenario=SCENARIO)
    else:
        words = NEXT.format(cd=cd, scenario=SCENARIO, recording=RECORDING)
    click.echo(words, nl=False)
    if PLACEHOLDER in contents[WORKFLOW]:
        click.echo(NO_SOURCE.format(workflow=WORKFLOW), nl=False)
    return ExitCode.OK


def write_all(folder: Path, contents: Mapping[str, str]) -> None:
    """Write all files or none: each is written under a temporary name before the first is moved. Raises OSError."""
    places = [folder / name for name in contents]
    missing = {parent for place in places for parent in place.parents if not parent.exists()}
    try:
        for place, text in zip(places, contents.values(), strict=True):
            place.parent.mkdir(parents=True, exist_ok=True)
            _temporary(place).write_text(text, encoding="utf-8", newline="\n")
        if folders := [place for place in places if place.is_dir()]:
            raise InputError([Fault(str(place), "expected a file, or nothing; got a folder") for place in folders])
        for place in places:
            _temporary(place).replace(place)
    finally:
        for place in places:
            with suppress(OSError):
                _temporary(place).unlink()
        for empty in sorted(missing, key=lambda path: -len(path.parts)):
            with suppress(OSError):  # not empty: in use
                empty.rmdir()


def _temporary(place: Path) -> Path:
    return place.with_name(place.name + NEW)
