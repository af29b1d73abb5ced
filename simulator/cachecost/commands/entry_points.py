"""Finds the command that starts a project's agent, for `cachecost init`: from its metadata, else by names of files."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path, PurePosixPath
from typing import Any

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import value
from cachecost.commands.project_sources import HOSTS, SourceFile, files_that_use, read_sources

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
    package = _mapping(_parsed(root / "package.json", json.loads))
    scripts = _mapping(package.get("scripts"))
    for name in ("agent", "start"):
        script = scripts.get(name)
        if isinstance(script, str) and (source := _named_in(script, using)):
            yield _Candidate(_runnable(name, script), f"scripts.{name} of package.json: {source.path}", source)
    programs = package.get("bin")
    for path in [programs] if isinstance(programs, str) else _mapping(programs).values():
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
    project = _mapping(_mapping(_parsed(root / "pyproject.toml", tomllib.loads)).get("project"))
    for name, target in _mapping(project.get("scripts")).items():
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


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


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
    return _package_candidate(source, packages)


def _package_candidate(source: SourceFile, packages: Set[PurePosixPath]) -> _Candidate:
    """A module of a package runs by its name, from the folder of the outermost package."""
    top = source.path.parent
    while top.parent in packages:
        top = top.parent
    module = source.path.parent if source.path.stem == "__main__" else source.path.with_suffix("")
    name = ".".join(module.relative_to(top.parent).parts)
    base = "" if top.parent == PurePosixPath() else str(top.parent)
    return _Candidate(f"python -m {name}", str(source.path), source, base)
