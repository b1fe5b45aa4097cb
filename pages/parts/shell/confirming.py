"""The link to blind judgments of two embeddings."""

from __future__ import annotations

from collections.abc import Sequence

from udml_core.runs import Run
from udml_core.runs.search import epoch_of
from udml_core.runs.search.differing import side_name

from .views import view_link


def link_to_judging(embeddings: Sequence[tuple[Run, str]]) -> None:
    """Show a link that judges the first against the last of several embeddings on the view Compare.

    Args:
        embeddings: Runs and their embeddings by name. Epochs are left out, because they have a sample of images only;
            no link is shown for fewer than two others.
    """
    names = [side_name(run.id, frame) for run, frame in embeddings if epoch_of(frame) is None]
    if len(names) > 1:
        view_link("compare", label="Confirm by judgments", icon=":material/how_to_vote:",
                     help="See queries with the nearest image in each embedding, without names, and choose the better.",
                     query_params={"part": "Judge", "a": names[0], "b": names[-1]})
