"""What the races from a run's features found, and what the user's own judgments say, in one place."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from udml_core.base.errors import capitalized
from udml_core.exploration.race import Race
from udml_core.exploration.race_figures import MEASURES, both_words, setup_words
from udml_core.exploration.search_names import plain_name
from udml_core.runs import Run
from udml_core.runs.search.judged_runs import go_on
from udml_core.work.jobs.concluding import conclusion_of
from udml_core.work.jobs.raced import Raced

from ..shell.cached import dataset_at_hand
from ..shell.race_judgments import run_judgments
from ..shell.race_verdict import conclusion_icon
from ..shell.run_status import escaped
from ..shell.views import view_link


def show_races(run: Run, races: Sequence[Raced]) -> None:
    """Show the advice of each race from a run's features, as Data shows it."""
    for race, _, analysis in races:
        of = conclusion_of(analysis, dataset_at_hand(run.spec().dataset))
        headline, *more = of.once(of.headline, of.counted, of.sure, of.beside)
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"race-{analysis.id}"):
            measure = MEASURES[race.serves].capitalize()
            st.markdown(f"{conclusion_icon(of)} {measure}: **{escaped(headline)}**", width="stretch",
                        help=escaped(" ".join(more)) or None)
            view_link("data", label="Details", icon=":material/arrow_forward:", query_params={
                "dataset": run.spec().dataset, "view": "advice", "budget": f"{race.budget:g}",
                "serves": race.serves}, help="The race on the page Data: all candidates, with their figures.")


def show_figures(races: Sequence[Raced]) -> None:
    """Show the figures behind the advice of each race in a closed part."""
    if races:
        with st.expander("Figures of these races"):
            st.markdown("\n".join(f"- {MEASURES[race.serves].capitalize()}. {escaped(_figures(race))}"
                                  for race, *_ in races))


def _figures(race: Race) -> str:
    """Return both verdicts on the advice with their figures, or on the largest gain, which may be chance."""
    outcome = race.best or race.judged[0]
    assert outcome.against_start is not None, "the candidate was judged"
    name = capitalized(plain_name(outcome.setup, race.start)) if race.best else "The largest gain"
    return f"{name}: {setup_words(race, outcome.setup)}, compared with the plain search: " \
           f"{both_words(outcome.against_start, race.serves, is_exact=True)}."


def show_own(run: Run) -> None:
    """Show what the user's blind judgments of the run's embeddings say."""
    for number, (said, (first, second), results) in enumerate(run_judgments(run)):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"own-{run.id}-{number}"):
            st.markdown(f":material/thumbs_up_down: {said}", width="stretch")
            if go_on(said):
                runs = ".".join(dict.fromkeys(name.partition(":")[0] for name in (first, second)))
                view_link("compare", label="Continue judging", icon=":material/thumbs_up_down:",
                          query_params={"part": "Judge", "runs": runs, "a": first, "b": second, "results": results})
