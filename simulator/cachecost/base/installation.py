"""How this copy of cachecost was installed, and the command that adds packages to it.

What an installer records: `direct_url.json` for everything that was not found by name (the specification "Recording
the Direct URL Origin of installed distributions", packaging.python.org), `INSTALLER`, and a file of pipx and uv at the
root of the environments that they manage.
"""

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
            return self._join([], [*self._packages_of(names), *packages])
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
        path = _local_path(self.direct_url)
        if path is not None and not path.exists():
            return None
        if path is not None and self.direct_url.get("dir_info", {}).get("editable"):
            return ["--editable", f"{path}{_brackets(extras)}"]
        return [f"{_with_extras(extras)} @ {_pinned_url(self.direct_url)}"]

    def _packages_of(self, extras: list[str]) -> list[str]:
        """What the extras require, by the metadata."""
        of_extra = re.compile(rf"extra == ['\"](?:{'|'.join(map(re.escape, extras))})['\"]")
        lines = [line.partition(";") for line in self.requires]
        return [name.strip() for name, _, marker in lines if of_extra.search(marker)]

    def _join(self, source: list[str], packages: list[str]) -> str:
        added = [word for name in packages for word in ("--with", name)]
        match self.installer:
            case "pip":
                return shlex.join([*_pip(self.python), "install", *source, *packages])
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


def _pip(python: str) -> list[str]:
    """`pip` where that is the one beside the Python, so that the short command is the right one."""
    beside = shutil.which("pip")
    return ["pip"] if beside and Path(beside).parent == Path(python).parent else [python, "-m", "pip"]


def _with_extras(extras: list[str]) -> str:
    return f"{OWN}{_brackets(extras)}"


def _brackets(extras: list[str]) -> str:
    return f"[{','.join(extras)}]" if extras else ""


def _local_path(direct_url: dict[str, Any]) -> Path | None:
    parts = urlsplit(direct_url["url"])
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def _pinned_url(direct_url: dict[str, Any]) -> str:
    """The URL for a requirement: with version control, commit and subdirectory where there are any."""
    url: str = direct_url["url"]
    if version_control := direct_url.get("vcs_info"):
        url = f"{version_control['vcs']}+{url}@{version_control['commit_id']}"
    folder = direct_url.get("subdirectory")
    return f"{url}#subdirectory={folder}" if folder else url
