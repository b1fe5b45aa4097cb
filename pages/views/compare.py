"""Compare: two to six runs in one view."""

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from pages.parts.compare.choosing import FEWEST, PARAMETER, choose_compared
from pages.parts.compare.classes import show_classes
from pages.parts.compare.judging import show_judging
from pages.parts.compare.matched_maps import show_maps
from pages.parts.compare.opinions import Search, brief_names
from pages.parts.compare.pair_verdict import search_names, show_searches_verdict, steps_words
from pages.parts.compare.pair_within_run import keep_pair, open_own_search, run_of_pair, show_differences
from pages.parts.compare.queries import show_same_query, show_wins
from pages.parts.compare.seed_means import MOST_RANKED, show_measures
from pages.parts.compare.settings import show_settings
from pages.parts.compare.sides import LETTERS
from pages.parts.curves.run_curves import show_curves
from pages.parts.shell.address import address_decides, note_address, note_click, write_address
from pages.parts.shell.cached import dataset_at_hand, load_retrieval
from pages.parts.shell.empty_state import offer_example, offer_lab, show_empty
from pages.parts.shell.focus import carry_image
from pages.parts.shell.run_picker import keep_app_run
from pages.parts.shell.run_status import run_titles
from pages.parts.shell.user_errors import show_user_errors
from udml_core.base.errors import UserError
from udml_core.runs import Run, list_runs, runs_folder
from udml_core.runs.analyses import REFINED
from udml_core.runs.run_comparison import share_images
from udml_core.runs.search.differing import SEPARATOR

QUERY, WINS, JUDGE, CLASSES = "Same query", "Where they differ", "Judge", "Classes"
MAPS, CURVES, SETTINGS = "Maps", "Curves", "Settings"
PARTS = (QUERY, WINS, JUDGE, CLASSES, MAPS, CURVES, SETTINGS)
PAIR_PARTS = (WINS, JUDGE)  # of two embeddings of a run
PART = "compare-part"  # key of the choice
OF_IMAGES = (QUERY, WINS, CLASSES, MAPS)
OF_TRAINING = (CLASSES, MAPS, CURVES)
FORMER = {"Who wins?": WINS}  # parts by the names that older links hold


def decide_part() -> str | None:
    """Decide which part is shown before the page draws anything; the part Judge has a head of its own.

    The address holds the choice, and decides when the browser goes Back or Forward.

    Returns:
        The part; None for the first.
    """
    if following := st.session_state.pop("compare-next-part", None):
        st.session_state[PART] = following
    elif address_decides("part", PART):
        linked = st.query_params.get("part", "")
        st.session_state[PART] = FORMER.get(linked, linked)
    if st.session_state.get(PART) not in PARTS:
        st.session_state.pop(PART, None)
    return st.session_state.get(PART)


def parts_of(runs: Sequence[Run]) -> tuple[str, ...]:
    """Return the parts that can be chosen: images without labels have no classes."""
    with suppress(UserError):  # the images are missing, which the parts say
        if dataset_at_hand(runs[0].spec().dataset).labels is None:
            return tuple(part for part in PARTS if part != CLASSES)
    return PARTS


def choose_part(first: str, parts: Sequence[str] = PARTS) -> str:
    """Choose what is compared.

    Args:
        first: The part without a choice.
        parts: The parts that can be chosen.
    """
    if st.session_state.get(PART) not in parts:
        st.session_state[PART] = first
    part: str = st.segmented_control("Compare", parts, required=True, key=PART, on_change=note_click,
                                     args=(PART,), label_visibility="collapsed") or first
    write_address("part", part, first)
    note_address("part")
    return part


def first_part(runs: Sequence[Run]) -> str:
    """Return the part that is shown without a choice: the images if they can be searched at once, else the curves."""
    searched = [((run.evaluation() or {}).get("final") or {}).get("images") for run in runs]
    return QUERY if share_images(runs) and all(0 < (count or 0) <= MOST_RANKED for count in searched) else CURVES


def frames_in_view() -> dict[str, str]:
    """Return the embeddings that the address names as A and B, by their runs; empty without a refinement among them.

    They stay in view on every part until other runs are chosen.
    """
    sides = [st.query_params.get(letter, "").rpartition(SEPARATOR) for letter in LETTERS]
    frames = {run_id: frame for run_id, _, frame in sides}
    is_chosen = set(frames) == set(st.query_params.get(PARAMETER, "").split("."))
    return frames if is_chosen and any(frame.startswith(REFINED) for frame in frames.values()) else {}


def refinements_in_view() -> dict[str, str]:
    """Return the refinements that are compared in place of what their runs trained, by their runs."""
    return {run_id: frame for run_id, frame in frames_in_view().items() if frame.startswith(REFINED)}


def compare(runs: Sequence[Run]) -> None:
    """Show the measures of the runs, and the chosen comparison."""
    if share_images(runs):
        carry_image(runs[0].spec().fingerprint)
    frames = frames_in_view()
    if not frames:  # the verdict on runs says nothing of refinements
        show_measures(runs)
    part = choose_part(first_part(runs), parts_of(runs))
    names = brief_names(runs) if share_images(runs) else list(run_titles(runs).values())
    if frames:
        names = show_searches([(run, frames[run.id]) for run in runs], list(frames), part, names)
    if part in OF_IMAGES and not share_images(runs):
        st.info("These runs search different test images. Choose runs on the same data set and split that leave out "
                "the same images.",
                icon=":material/lightbulb:")
    elif part == QUERY:
        show_same_query(runs, names, frames)
    elif part == WINS and (frames or load_retrieval(runs[0]).dataset.labels is None):
        show_differences(runs, names if len(runs) == FEWEST else ())
    elif part == WINS:
        show_wins(runs, names)
    elif part == CLASSES:
        show_classes(runs, names)
    elif part == MAPS:
        show_maps(runs, names)
    elif part == SETTINGS:
        show_settings(runs, names, [steps_words(run, frames[run.id]) for run in runs] if frames else ())
    else:
        show_curves(runs, "compare")


def show_searches(searches: Sequence[Search], order: Sequence[str], part: str, names: Sequence[str]) -> list[str]:
    """Show the verdict on the two searches in view, which the part Where they differ shows below its choices.

    Args:
        searches: The searches in the order of their runs.
        order: The ids of the runs of A and B.
        part: The open part.
        names: The names of the runs.

    Returns:
        The names of the searches; of the runs where the searches share a name.
    """
    full = search_names(searches)
    if part != WINS:
        places = sorted(range(len(searches)), key=lambda place: order.index(searches[place][0].id))
        show_searches_verdict([searches[place] for place in places], [full[place] for place in places])
    if part in OF_TRAINING:
        st.caption("This part shows what was trained, without the steps after it.")
    return full if len(set(full)) == len(full) and part not in OF_TRAINING else list(names)


def show_pair(finished: Sequence[Run]) -> None:
    """Show where two embeddings of a run differ; Judge is the only other part that compares them."""
    choose_part(WINS, PAIR_PARTS)
    show_differences(finished)


def draw() -> None:
    """Draw the view."""
    keep_app_run()
    with show_user_errors():
        finished = [run for run in list_runs(runs_folder()) if run.stored_status().state == "done"]
        open_own_search(finished)
        if decide_part() == JUDGE and finished:
            is_pair = len(finished) < FEWEST or run_of_pair(finished) is not None
            judged = [run for run in finished if st.query_params.get("a", "").startswith(run.id)] or finished
            choose_part(*((WINS, PAIR_PARTS) if is_pair else (QUERY, parts_of(judged))))
            show_judging(finished)
            keep_pair(finished)
        elif len(finished) < FEWEST and run_of_pair(finished):
            show_pair(finished)
        elif len(finished) < FEWEST:
            if finished:
                choose_part(QUERY)
            show_empty("Comparing needs two finished runs. Train a run on the page **Lab**, or open an example.")
            if not offer_example(primary=True):
                offer_lab()
        else:
            compared = choose_compared(finished, refinements_in_view())
            if len(compared) < FEWEST and run_of_pair(finished):
                show_pair(finished)
            elif len(compared) < FEWEST:
                choose_part(QUERY)
                st.info("Choose two to six runs above.", icon=":material/lightbulb:")
            else:
                compare(compared)
