"""Gather the pages of the site of the documents: the documents as they lie here, the lessons, and the library.

    python -m experiments.make_site

`make docs` runs it, and then MkDocs with mkdocs.yml.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from udml_core.results.lessons import course, export_course

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "site" / "source"
LINKED = ("assets/readme", "assets/icon.png", "assets/lessons/README.md", "assets/results/findings.toml",
          "assets/fashion-mini.LICENSE", "assets/emoji.LICENSE", "LICENSE")
"""Files and folders outside docs/ that documents link to."""
MODULES = ("sklearn", "methods.base", "methods.registry", "data.catalog", "data.dataset", "data.splits", "runs.request",
           "runs.folder", "runs.finding", "runs.search.retrieval", "numerics.refinement.refiner",
           "numerics.evaluation.retrieval_measures", "numerics.neighbors.exact", "numerics.graph.authority_shift")
"""What users of the library import, by its module in udml_core."""

BELOW_GUIDES, LAST = 1e-3, 1e-4
"""Factors by which the search ranks the library and the changes: a word in a title counts 1,000 times one in a text."""


def copy_documents() -> None:
    """Copy all documents and what they link to, at their own paths, so that links between them hold."""
    for path in (*ROOT.glob("*.md"), ROOT / "docs", *(ROOT / name for name in LINKED)):
        copy = SOURCE / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, copy, ignore=shutil.ignore_patterns("__pycache__", "requirements.txt"))
        else:
            shutil.copy(path, copy)


def main() -> None:
    """Write all pages into an empty folder."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    copy_documents()
    export_course(SOURCE / "course")
    intro = "Each lesson runs in the browser, as does [the course](course/index.html)."
    lessons = "".join(f"1. [{lesson.title}](course/{lesson.id}.html): {lesson.claim}\n" for lesson in course())
    (SOURCE / "lessons.md").write_text(f"# Lessons\n\n{intro}\n\n{lessons}", encoding="utf-8")
    library = "".join(f"::: udml_core.{name}\n\n" for name in MODULES)
    (SOURCE / "api.md").write_text(f"{ranked(BELOW_GUIDES)}# Library\n\n{library}", encoding="utf-8")
    changes = SOURCE / "CHANGELOG.md"
    changes.write_text(ranked(LAST) + changes.read_text(encoding="utf-8"), encoding="utf-8")


def ranked(boost: float) -> str:
    """Return the head of a page that the search of the site ranks by a factor."""
    return f"---\nsearch:\n  boost: {boost:.4f}\n---\n\n"


if __name__ == "__main__":
    main()
