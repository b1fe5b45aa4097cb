"""Choosing the two embeddings that are judged; the address keeps them as `a` and `b`, each RUN:FRAME."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from udml_core.base.errors import capitalized
from udml_core.runs import Run
from udml_core.runs.analyses import REFINED
from udml_core.runs.search import FINAL, FROZEN, Gallery
from udml_core.runs.search.differing import SEPARATOR, Side, side_name
from udml_core.runs.search.judged_runs import has_plain

from ..retrieval.embeddings import own_titles
from ..retrieval.filters import GALLERIES, GALLERY_WORDS
from ..shell.address import choose_segment, write_address
from ..shell.cached import load_retrieval
from ..shell.race_judgments import search_kind
from ..shell.run_picker import app_run
from ..shell.run_status import run_titles
from .choosing import FEWEST, PARAMETER, compared_by_default, rivals_of

LETTERS = ("a", "b")
INSTEAD = {FROZEN: (FROZEN, "initial")}
"""What is compared if the features that a link names are no longer in the cache."""


@dataclass(frozen=True)
class Contest:
    """The two embeddings that are judged.

    Attributes:
        sides: Embeddings A and B.
        names: Their names in words; only what differs.
        gallery: The images that are searched.
    """

    sides: tuple[Side, Side]
    names: tuple[str, str]
    gallery: Gallery

    @property
    def titles(self) -> tuple[str, str]:
        """The letters with the names behind them: their plain names beside the plain search, else what differs."""
        first, second = self._plain_names or self.names
        return f"A ({first})", f"B ({second})"

    @property
    def kinds(self) -> tuple[str, str]:
        """What stands before results: the plain names beside the plain search, else the letters."""
        first, second = self._plain_names or "AB"
        return capitalized(first.removeprefix("the ")), capitalized(second.removeprefix("the "))

    @property
    def _plain_names(self) -> tuple[str, str] | None:
        """The plain names, such as "the refined search"; None if they are the same, or neither is the plain search."""
        first, second = (search_kind(side.retrieval.run, side.frame) for side in self.sides)
        return (first, second) if self.has_plain and first != second else None

    @property
    def has_plain(self) -> bool:
        """Whether one of the two is the plain search."""
        return has_plain(self.sides)


def choose_contest(runs: Sequence[Run]) -> Contest:
    """Choose a run and an embedding for each side, and the images that are searched.

    Args:
        runs: Finished runs, newest first.

    Raises:
        UserError: The data set of a run is not available.
    """
    wanted = wanted_sides(runs)
    first, first_title = _choose_side("a", runs, wanted[0])
    run = first.retrieval.run
    rivals = rivals_of(run, runs)
    fits = wanted[1].rpartition(SEPARATOR)[0] in {run.id, *(rival.id for rival in rivals)}
    opponent = side_name(rivals[0].id, FINAL) if rivals else side_name(run.id, FROZEN)
    second, second_title = _choose_side("b", [run, *rivals], wanted[1] if fits else opponent)
    gallery: Gallery = "test"
    if first.retrieval.split.name != "all":
        gallery = choose_segment("Search in", "gallery", GALLERIES, "test", key="judge-gallery",
                                 format_func=GALLERY_WORDS.__getitem__)
    sides = (first, second)
    return Contest(sides, words_of_sides(sides, (first_title, second_title), run_titles(runs)), gallery)


def wanted_sides(runs: Sequence[Run]) -> tuple[str, str]:
    """Return the embeddings in the address, or the default; a warning says that the address names an unknown run."""
    known = {run.id for run in runs}
    first, second = (st.query_params.get(letter, "") for letter in LETTERS)
    if all(side.rpartition(SEPARATOR)[0] in known for side in (first, second)):
        return first, second
    if first or second:
        st.warning("The link names a run that was removed or is not finished, so other embeddings are compared.",
                   icon=":material/link_off:")
    return default_sides(runs)


def default_sides(runs: Sequence[Run]) -> tuple[str, str]:
    """Return two runs after training, as the rest of the page compares them; a single run before and after."""
    by_id = {run.id: run for run in runs}
    named = [run_id for run_id in st.query_params.get(PARAMETER, "").split(".") if run_id in by_id][:FEWEST]
    own = by_id.get(app_run() or "", runs[0])
    ids = named if len(named) == FEWEST else compared_by_default(runs, own)
    if len(ids) == FEWEST and by_id[ids[1]] in rivals_of(by_id[ids[0]], runs):
        return side_name(ids[0], FINAL), side_name(ids[1], FINAL)
    return side_name(own.id, FROZEN), side_name(own.id, FINAL)


def _choose_side(letter: str, runs: Sequence[Run], wanted: str) -> tuple[Side, str]:
    """Choose a run and its embedding; return them with the title of the embedding."""
    by_id, titles = {run.id: run for run in runs}, run_titles(runs)
    wanted_run, _, wanted_frame = wanted.rpartition(SEPARATOR)
    left, right = st.columns(2)
    run_id = left.selectbox(f"Run {letter.upper()}", list(titles), list(titles).index(wanted_run)
                            if wanted_run in titles else 0, format_func=titles.__getitem__,
                            key=f"judge-{letter}-run-{runs[0].spec().fingerprint[:8] if letter == 'b' else ''}")
    retrieval = load_retrieval(by_id[run_id])
    frames = own_titles(retrieval)
    stored = [name for name in INSTEAD.get(wanted_frame, (wanted_frame,)) if name in frames and run_id == wanted_run]
    first = next(iter(stored), FINAL)
    frame = right.selectbox(f"Search {letter.upper()}", list(frames), list(frames).index(first),
                            format_func=frames.__getitem__, key=f"judge-{letter}-frame-{run_id}")
    write_address(letter, side_name(run_id, frame))
    return Side(retrieval, frame), frames[frame]


def words_of_sides(sides: tuple[Side, Side], frames: tuple[str, str], runs: dict[str, str]) -> tuple[str, str]:
    """Return the names of the embeddings in words: what differs of the run and the embedding.

    Args:
        sides: The embeddings.
        frames: Their titles within their runs.
        runs: The names of runs by id.
    """
    first, second = (runs[side.retrieval.run.id] for side in sides)
    if first == second:
        return frames
    if all(side.frame == FINAL for side in sides):
        return first, second
    named = [title if _names_method(side) else f"{run}, {title[0].lower()}{title[1:]}"
             for side, run, title in zip(sides, (first, second), frames, strict=True)]
    return (named[0], named[1]) if named[0] != named[1] else (f"{first}, {frames[0]}", f"{second}, {frames[1]}")


def _names_method(side: Side) -> bool:
    """Return whether the title of an embedding says what was trained, as that of a refinement after training does."""
    return side.frame.startswith(REFINED) and side.retrieval.spec.method != FROZEN
