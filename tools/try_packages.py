"""Installs wheel and source distribution into fresh environments and tries them: `python -m tools.try_packages [DIST]`.

With each Python from 3.11 to 3.14 that it finds (`--python` names others), and with the index, as a person would with
`pip install`. Without DIST, both are built first. Needs no package: the release workflow runs it with a bare Python.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parents[1]
MINORS = (11, 12, 13, 14)
SCENARIO = ROOT / "scenarios/progressive-caching.yaml"
TRANSCRIPTS = ROOT / "scenarios/recordings/transcripts"
EXTRAS = "server"


class Failed(Exception):
    """A command did not do what is expected of it."""


def run(*command: str | Path, cwd: Path) -> str:
    """Its stdout. Raises Failed with the end of what it printed."""
    bare = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=bare, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(
            f"{' '.join(map(str, command))}: exit code {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}"
        )
    return done.stdout


def find_pythons() -> Iterator[str]:
    for minor in MINORS:
        finder = ["sh", str(ROOT / ".ci/find-python"), f"python3.{minor}"]
        pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
        found = subprocess.run(finder, capture_output=True, text=True, check=False).stdout.strip()
        others = sorted(map(str, pyenv.glob(f"3.{minor}.*/bin/python3.{minor}")))
        yield from [found] if found else others[-1:]


def build(folder: Path) -> None:
    """Both distributions, the wheel from the unpacked source distribution."""
    environment = folder / "build"
    run(sys.executable, "-m", "venv", environment, cwd=folder)
    python = environment / "bin/python"
    lock = ROOT / "requirements-build.lock"
    run(python, "-m", "pip", "install", "--quiet", "--require-hashes", "--requirement", lock, cwd=folder)
    dist = folder / "dist"
    run(python, "-m", "hatchling", "build", "--target", "sdist", "--directory", dist, cwd=ROOT)
    (source,) = dist.glob("*.tar.gz")
    shutil.unpack_archive(source, folder, filter="data")
    unpacked = folder / source.name.removesuffix(".tar.gz")
    run(python, "-m", "hatchling", "build", "--target", "wheel", "--directory", dist, cwd=unpacked)


def try_one(python: str, distribution: Path, folder: Path) -> str:
    """Install a distribution into a fresh environment and use it; what was seen, in one line. Raises Failed."""
    environment = folder / "environment"
    run(python, "-m", "venv", environment, cwd=folder)
    pip = (environment / "bin/python", "-m", "pip", "--disable-pip-version-check", "--no-input")
    run(*pip, "install", "--quiet", f"{distribution}[{EXTRAS}]", cwd=folder)
    run(*pip, "check", cwd=folder)
    cachecost = environment / "bin/cachecost"
    version = run(cachecost, "--version", cwd=folder).strip()
    strategies = json.loads(run(cachecost, "run", SCENARIO, "--no-report", "--json", cwd=folder))["strategies"]
    bill = json.loads(run(cachecost, "bill", TRANSCRIPTS, "--json", cwd=folder))
    run(cachecost, "init", "project", cwd=folder)
    run(cachecost, "check", "--update", cwd=folder / "project")
    run(cachecost, "check", cwd=folder / "project")
    return f"{version}; run: {len(strategies)} strategies; bill: {bill['calls']} calls; init and check"


def try_all(pythons: Sequence[str], distributions: Sequence[Path]) -> int:
    failed = 0
    for python, distribution in product(pythons, distributions):
        version = run(python, "-c", "import platform; print(platform.python_version())", cwd=ROOT).strip()
        with tempfile.TemporaryDirectory(prefix="try-packages-") as folder:
            try:
                seen = try_one(python, distribution, Path(folder))
            except Failed as error:
                failed, seen = 1, f"FAILED\n{error}"
        sys.stdout.write(f"Python {version}  {distribution.name}  {seen}\n")
        sys.stdout.flush()
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("dist", nargs="?", type=Path, help="The folder of the distributions; built if left out.")
    parser.add_argument("--python", action="append", help="A Python to try, instead of those found; can be repeated.")
    arguments = parser.parse_args()
    pythons = arguments.python or list(find_pythons())
    with tempfile.TemporaryDirectory(prefix="try-packages-") as folder:
        if arguments.dist is None:
            build(Path(folder))
        dist = (arguments.dist or Path(folder) / "dist").resolve()
        distributions = sorted([*dist.glob("*.whl"), *dist.glob("*.tar.gz")])
        if not pythons or len(distributions) < 2:
            parser.error(f"found {len(pythons)} Pythons, and {len(distributions)} distributions in {dist}")
        return try_all(pythons, distributions)


if __name__ == "__main__":
    sys.exit(main())
