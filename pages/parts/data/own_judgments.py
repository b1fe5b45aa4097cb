"""The part of a race's card that tells the three kinds of judging apart."""

from __future__ import annotations

import streamlit as st

from udml_core.data.dataset import Dataset
from udml_core.data.given.judged_pairs import judged_pairs
from udml_core.exploration.kinds_of_judging import NAMES, judging_lines
from udml_core.exploration.race import Outcome
from udml_core.exploration.race_conclusion import UNJUDGED, Conclusion
from udml_core.runs import runs_folder
from udml_core.work.jobs.answering import judged_words
from udml_core.work.jobs.concluding import results_of, stored_judgments

from ..shell.run_status import escaped
from ..shell.views import view_link


def show_own_judgments(of: Conclusion, dataset: Dataset, own: Outcome | None) -> None:
    """Show what each kind of judging answers, what is done so far, and what is next.

    Args:
        of: The conclusion of a race.
        dataset: Its images.
        own: The candidate with which the user searches; None without one.
    """
    if not of.race.is_judged:
        return
    judgments = UNJUDGED if of.candidate is None else stored_judgments(
        of.race, of.candidate, results_of(of.race), runs_folder(), dataset)
    of_own = "" if own in (None, of.candidate) else judged_words(of.race, own, runs_folder(), dataset)
    lines = judging_lines(of.race, judgments, len(judged_pairs(dataset).read()), of_own)
    with st.expander("Your own judgments", icon=":material/thumbs_up_down:"):
        st.markdown("\n".join(f"- **{NAMES[kind]}:** {escaped(words)}" for kind, words in lines.items()))
        view_link("retrieval", {"run": of.race.run, "view": NAMES["same"]}, label=NAMES["same"], icon=":material/rule:")
