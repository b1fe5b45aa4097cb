"""What is next after a race that ended: search with its winner, judge it, or keep the search that the user chose."""

from __future__ import annotations

import math
from collections.abc import Callable

import streamlit as st

from udml_core.base.errors import capitalized
from udml_core.exploration.race import Outcome, Race
from udml_core.exploration.race_certainty import effort_of
from udml_core.exploration.race_conclusion import Conclusion
from udml_core.exploration.race_elsewhere import Elsewhere
from udml_core.exploration.race_figures import MEASURES, measured_words
from udml_core.exploration.search_names import plain_name
from udml_core.runs import Run, find_run, runs_folder
from udml_core.runs.search import FINAL
from udml_core.work.jobs.answering import Relation

from ..shell.run_status import escaped
from ..shell.user_errors import show_user_errors
from ..shell.views import open_view
from .using import KEEP, PIN, SEARCH, USE, Kind, open_used, use_button

JUDGE = ":material/thumbs_up_down:"
CONFIRM, CONTINUE = "Confirm by judgments", "Continue judging"
LONG = 60
"""Letters from which a sentence takes a line of its own beside its button."""
JUDGING = ("You see a query and where the two searches differ, without their names: the first result, or a few "
           "of the results if the race served whole groups.")


def relation_words(race: Race, relation: Relation, own: Outcome | None) -> str:
    """Return how the search that the user chose stands in a race, in Markdown."""
    if own is None:
        return "It took no part in this race." if relation == "unjudged" else ""
    if relation == "same":
        return "It is the best of this race."
    if relation == "equal":
        return "It does about as well as the best of this race."
    return f"In this race: {escaped(measured_words(race.gain(own), MEASURES[race.serves]))}."


def is_kept(of: Conclusion, relation: Relation, own: Outcome | None) -> bool:
    """Return whether the next step is to keep the search that the user chose, because nothing speaks against it."""
    if of.action == "search":
        return of.basis != "contradicted" and (own is None or of.race.verdict(own) != "worse")
    return relation == "equal" or (relation == "same" and of.action in ("use", "name"))


def show_kept(race: Race, of: Conclusion, own: tuple[Run, str], relation: Relation, part: Outcome | None,
              elsewhere: Elsewhere | None) -> None:
    """Show that the search that the user chose can stay where nothing speaks against it, and how to search with it.

    Where judges found it worse and the race does not tell it, because they underrate such searches, eyes decide.

    Args:
        race: The race.
        of: Its conclusion.
        own: The search.
        relation: How it stands to the conclusion.
        part: Its candidate in the race; None if it took no part.
        elsewhere: What another race says of its best search; None without such a race.
    """
    is_other = relation not in ("same", "equal")
    doubted = part if is_other and part is not None and race.gain(part).is_undervalued else None
    keeps = ("keep your search, against which nothing speaks here" if doubted is None else
             "judge your search by eye, as judges underrate searches like it")
    says = {"same": "search with it, as you do already.", "equal": "keep your search, which does about as well."}.get(
        relation, f"{keeps}, or go back to the plain search.")
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="advice-next"):
        st.markdown(f"**Next:** {says}", width="stretch" if len(says) > LONG else "content")
        if doubted is not None:
            use_button("Judge it", JUDGE, race, doubted, "compare", JUDGING, kind="primary")
        _search_with_own(own, "primary" if doubted is None else "tertiary",
                         "Search with it" if relation == "same" else KEEP)
        if relation == "equal":
            _use(race, of, elsewhere, "tertiary", "Use this one instead")
            return
        if is_other:
            use_plain(race, "tertiary")
            return
        if of.candidate is not None and not of.is_judged:
            _judge(of, CONFIRM, "tertiary")
        if of.action == "name":
            _name_groups(race, of, "tertiary")


def _search_with_own(own: tuple[Run, str], kind: Kind, label: str = KEEP) -> None:
    """Show the button that searches with what the user chose, which is kept beside newer trainings."""
    if st.button(label, icon=PIN if label == KEEP else SEARCH, key="advice-own", type=kind):
        open_used(*own)


def show_next(race: Race, of: Conclusion, own: tuple[Run, str] | None, relation: Relation,
              elsewhere: Elsewhere | None, again: Callable[[], None] | None) -> None:
    """Show what is next: a sentence, the button that does it, the other choice beside it, and the search in use."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="advice-next"):
        if of.next_step:
            is_long = len(of.next_step) > LONG
            st.markdown(f"**Next:** {escaped(of.after(of.next_step))}", width="stretch" if is_long else "content")
        if of.action == "use":
            _use(race, of, elsewhere, "primary")
        elif of.action == "judge":
            _judge(of, CONTINUE if of.is_begun else CONFIRM, "primary")
        elif of.action == "name":
            _name_groups(race, of, "primary")
        elif of.action == "search":
            use_plain(race, "primary")
        elif of.action == "again" and again is not None:
            again()
        if relation != "same" or of.action != "judge":  # one button leads to the search in use
            _show_other_choice(race, of, elsewhere)
        if own is not None:
            _search_with_own(own, "tertiary")


def _name_groups(race: Race, of: Conclusion, kind: Kind) -> None:
    """Show the button that names the groups that a search finds."""
    if st.button("Name groups", icon=":material/label:", key="advice-name", type=kind):
        open_view("labels", query_params={"run": of.use.run if of.use else race.run})


def _show_other_choice(race: Race, of: Conclusion, elsewhere: Elsewhere | None) -> None:
    """Show what can be done in place of the next step: use the search, confirm it, or use it nevertheless."""
    if of.action == "use" and not of.is_judged:
        _judge(of, CONFIRM, "tertiary")
    elif of.action == "judge" and of.use is not None:
        _use(race, of, elsewhere, "tertiary")
    elif of.action == "judge":
        use_plain(race, "tertiary")
    elif of.action == "name" and of.use is not None:
        _use(race, of, elsewhere, "tertiary")
    elif of.is_overruled and of.candidate is not None:
        use_button(f"Use {plain_name(of.candidate.setup, of.race.start)} nevertheless", SEARCH, of.race, of.candidate,
                   "retrieval", USE, kind="tertiary", key="advice-nevertheless")
    elif of.action == "search" and of.candidate is not None and not of.is_judged and (
            effort_of(of.race, of.candidate) != math.inf):
        use_button("Judge the largest gain yourself", JUDGE, of.race, of.candidate, "compare",
                   f"{capitalized(of.named)}: {JUDGING[0].lower()}{JUDGING[1:]}", kind="tertiary")


def _use(race: Race, of: Conclusion, elsewhere: Elsewhere | None, kind: Kind, label: str = "Search with it") -> None:
    """Show the button that searches with the search of a conclusion."""
    assert of.use is not None, "there is a search to use"
    if elsewhere is not None and elsewhere.wins(race):
        use_elsewhere(elsewhere, kind)
    else:
        use_button(label, SEARCH, of.race, of.use, "retrieval", USE, kind=kind)


def _judge(of: Conclusion, label: str, kind: Kind) -> None:
    """Show the button that judges the search of a conclusion against the frozen features."""
    assert of.candidate is not None, "there is a search to judge"
    use_button(label, JUDGE, of.race, of.candidate, "compare", JUDGING, kind=kind)


def use_plain(race: Race, kind: Kind) -> None:
    """Show the button that searches with the frozen features."""
    if st.button("Use the plain search", icon=SEARCH, key="advice-frozen", type=kind):
        with show_user_errors():  # its run may be gone
            open_used(find_run(race.run, runs_folder()), FINAL)


def use_elsewhere(elsewhere: Elsewhere, kind: Kind) -> None:
    """Show the button that uses the best search of another race."""
    use_button(f"Use {escaped(elsewhere.search)}", SEARCH, elsewhere.race, elsewhere.best, "retrieval", USE, kind=kind,
               key="advice-elsewhere")
