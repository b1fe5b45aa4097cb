"""A training beside the search in use, else beside the advised search: which is better, and the ways to choose."""

from __future__ import annotations

import streamlit as st

from udml_core.base.errors import UserError, capitalized
from udml_core.runs import Run
from udml_core.runs.opinions import NO_GAIN, adds_nothing
from udml_core.runs.search import FINAL
from udml_core.runs.search.differing import side_name
from udml_core.runs.used import chosen_at
from udml_core.work.jobs.verdicts import IN_USE, Rival, Stand, rival_of, stand_of

from ..data.using import KEEP, PIN, SEARCH, Kind, judge_link, open_used
from ..shell.cached import dataset_of
from ..shell.race_verdict import judgments_version
from ..shell.run_hash import RUN_HASH
from ..shell.run_status import escaped
from ..shell.views import open_view, view_link

COMPARE, BLIND_ICON = "Compare both", ":material/thumbs_up_down:"
BLIND = "Blind: you see where the two searches differ, without their names."


def stand_beside(run: Run) -> Stand | None:
    """Return how a run stands beside the search in use, else the advised search; None if nothing compares them."""
    return _stand(run, judgments_version(run))


@st.cache_data(ttl="10s", max_entries=64, show_spinner="Comparing with your search …", hash_funcs=RUN_HASH)
def _stand(run: Run, version: tuple[int, ...]) -> Stand | None:  # noqa: ARG001 (of the judgments, which decide)
    try:
        return stand_of(run, dataset_of(run))
    except UserError:  # an embedding was removed or is damaged, which other pages say
        return None


def show_stand(run: Run, stand: Stand, more: str | None = None) -> None:
    """Show how a run stands beside the search in use, else beside the advised search, and why.

    That training itself added nothing comes first, unless the search begins with this very training.

    Args:
        run: The run.
        stand: How it stands.
        more: What follows the reason behind the "?"; None to show the reason in the line.
    """
    why, idle = f"{escaped(stand.why)}.", adds_nothing(run)
    head, who = escaped(stand.head), "" if stand.own == FINAL else "this training with the same steps, "
    brief = f": {who}compared with it{':' if who else ','} {stand.said}." if stand.said else "."
    shown = f": {why}" if more is None else brief
    if idle and not stand.is_begun:
        line = f"{idle_line()} {head}{shown}"
    else:
        icon = "trophy" if stand.prefers_run or stand.is_begun else "push_pin"
        line = f":material/{icon}: **{head}**{shown}{f' {NO_GAIN}' * idle}"
    st.markdown(line, help=None if more is None else f"{capitalized(why)} {more}".strip())


def idle_line() -> str:
    """Return that training itself added nothing, in Markdown."""
    head, _, why = NO_GAIN.partition(":")
    return f":material/balance: **{head}**:{why}"


def offer_choice(run: Run, key: str, can_keep: bool = True) -> None:
    """Show the buttons that use a run's search or keep the search in use, and the link that compares both.

    The button with a frame does what the verdict says: compare both where judges see no clear difference. Without a
    verdict, it uses the run, unless training added nothing. A search that was chosen after the run ended is kept
    already.

    Args:
        run: A finished run.
        key: Prefix of the keys.
        can_keep: Whether the button stands here that keeps the search in use.
    """
    stand = stand_beside(run)
    try:
        rival = rival_of(run, dataset_of(run)) if stand is None else stand.rival
    except UserError:  # the images are missing, which the page says
        rival = None
    keeps = adds_nothing(run) or (stand is not None and not stand.prefers_run)
    is_begun, is_open = stand is not None and stand.is_begun, stand is not None and stand.is_open
    own = FINAL if stand is None else stand.own
    if is_open and rival is not None and rival.run.id != run.id and st.button(
            COMPARE, key=f"{key}-compare", icon=BLIND_ICON, help=BLIND):
        open_view("compare", _blind(run, rival, own))
    if rival is not None and keeps and _is_kept(run, rival) and not is_begun:
        st.caption(f"You kept {rival.name}.", width="content")
    elif rival is not None and keeps and can_keep:
        _keep_button(rival, key, "tertiary" if is_open else "secondary")
    what = "this training alone" if own == FINAL else "this training and the steps of your search"
    if st.button("Use this training", key=f"{key}-use", icon=SEARCH,
                 type="tertiary" if keeps else "secondary",
                 help=f"Search begins with {what} from now on, and Home links to it."):
        open_used(run, own)
    if rival is None:
        return
    if not keeps and rival.name == IN_USE and can_keep:
        _keep_button(rival, key, "tertiary")
    if rival.run.id != run.id and not is_open:
        view_link("compare", label=COMPARE, icon=BLIND_ICON, width="content", query_params=_blind(run, rival, own),
                  help=BLIND)


def _blind(run: Run, rival: Rival, own: str) -> dict[str, str]:
    """Return the address parameters of blind judgments of a run's embedding and another search."""
    return judge_link(side_name(rival.run.id, rival.frame), run.id, None if own == FINAL else own, rival.serves)


def _is_kept(run: Run, rival: Rival) -> bool:
    """Return whether the user chose a search after a run had ended."""
    return rival.name == IN_USE and chosen_at(rival.run) > (run.stored_status().finished or 0.0)


def _keep_button(rival: Rival, key: str, kind: Kind) -> None:
    """Show the button that keeps the search in use, else uses the advised search."""
    label = KEEP if rival.name == IN_USE else f"Use {rival.name}"
    if st.button(label, key=f"{key}-keep", icon=PIN, type=kind, help=(
            f"Opens Search with {escaped(rival.words)}. A training is offered again when a further one has ended.")):
        open_used(rival.run, rival.frame)
