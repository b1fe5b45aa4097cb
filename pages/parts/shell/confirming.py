"""The link to blind judgments of two embeddings."""

from __future__ import annotations

from collections.abc import Sequence

from udml_core.runs import Run
from udml_core.runs.search import epoch_of
from udml_core.runs.search.differing import side_name
from udml_core.runs.search.judged_runs import is_frozen
from udml_core.work.jobs.answering import aim_of
from udml_core.work.jobs.raced import judged_in_race

from .race_judgments import recipe_of
from .views import view_link


def link_to_judging(embeddings: Sequence[tuple[Run, str]]) -> None:
    """Show a link that judges the first against the last of several embeddings on the view Compare.

    Args:
        embeddings: Runs and their embeddings by name. Epochs are left out, because they have a sample of images only;
            no link is shown for fewer than two others.
    """
    judged = [(run, frame) for run, frame in embeddings if epoch_of(frame) is None]
    if len(judged) > 1:
        first, last = sorted((judged[0], judged[-1]), key=lambda side: not is_frozen(*side))  # as each race names them
        view_link("compare", label="Judge them blind", icon=":material/how_to_vote:",
                  help="See queries with the results in each embedding, without names, and choose the better.",
                  query_params={"part": "Judge", "a": side_name(first[0].id, first[1]),
                                "b": side_name(last[0].id, last[1])} | results_of(*last))


def results_of(run: Run, frame: str) -> dict[str, str]:
    """Return what is judged of an embedding, for an address: whole groups if judges see a gain in groups."""
    recipe = recipe_of(run, frame)
    judged = None if recipe is None else judged_in_race(run, recipe)
    return {"results": "group"} if judged is not None and aim_of(*judged) == "groups" else {}
