"""What of the repository stands beside docs/ on the site, and links that hold in both places.

A page in docs/ links as the repository lies, `../reports/x/report.md`, so that its links hold where the files are read.
The site's root is docs/, with reports, scenarios and notebooks beside the pages: links that leave docs/ are written
anew for it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
BESIDE = (
    "reports/*/*.md",
    "reports/*/*.svg",
    "reports/*/*.png",
    "reports/*/*.html",
    "scenarios/*.yaml",
    "scenarios/*.json",
    "scenarios/recordings/README.md",
    "notebooks/*.py",
    "notebooks/*.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put what docs/ links to beside its pages."""
    for pattern in BESIDE:
        for path in sorted(ROOT.glob(pattern)):
            files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as the site lies; one to a file that is not on the site becomes its text."""
    own = page.file.src_uri
    here = own if page.file.generated_by else f"docs/{own}"

    def mended(link: re.Match[str]) -> str:
        image, text, target, anchor = link.groups()
        there = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
        if "://" in target or target.startswith("mailto:") or not (ROOT / there).exists():
            return link[0]
        found = files.get_file_from_path(there.removeprefix("docs/"))
        if found is None or (ROOT / there).is_dir():
            return text
        return f"{image}[{text}]({posixpath.relpath(found.src_uri, posixpath.dirname(own) or '.')}{anchor or ''})"

    return LINK.sub(mended, markdown)
