"""The choice of the method, its explanation and its needs."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from udml_core.data.dataset import Dataset
from udml_core.data.given.labels import assigned_now
from udml_core.exploration.race import FROZEN
from udml_core.methods import METHODS, Method, find_method
from udml_core.numerics.measures import MAIN_MEASURES
from udml_core.results.label_free import record_words
from udml_core.runs import runs_folder
from udml_core.runs.search import FINAL
from udml_core.work import jobs
from udml_core.work.jobs.concluding import Suggestion, suggested_by_race

from ..data.answer import show_own
from ..data.using import SEARCH, chosen_search, search_link
from ..shell.race_verdict import conclusion_icon
from ..shell.run_status import escaped
from ..shell.views import open_view, view_link
from .method_cards import SECOND, SUGGESTED, lacking, method_cards
from .settings import follow_suggestion, forget_fields

# What the summaries of these methods leave out.
NEEDS = {"few": "**Needs a few labels.** ", "pairs": "**Needs pairs of images marked as similar or dissimilar.** ",
         "all": "**Needs the class of every training image.** "}
FEWEST_CLASSES = 2
PROMISES = {"gain": "In the records, training improves how well whole groups are found",
            "may fall": "Training can make whole groups harder to find"}
NEXT = {"": ("Open the race", ":material/trophy:", "data"),
        "use": ("Use the best search", ":material/trophy:", "data"),
        "judge": ("Judge it yourself", ":material/thumbs_up_down:", "data"),
        "name": ("Name groups", ":material/label:", "labels"),
        "search": ("Use the plain search", ":material/image_search:", "retrieval")}
"""The link to the next step of a conclusion: its label, its icon and its view."""
MEASURED_BY = " ".join(f"{measure.plain}: {measure.name}. {measure.help}" for measure in MAIN_MEASURES[::-1])
"""Which measures say how often the first image is right, and how much of a group is found."""


def choose_method(first: str, dataset: Dataset, on_pick: Callable[[], None]) -> type[Method]:
    """Choose a method by its card.

    A method whose labels or pairs the data set lacks cannot be picked; a link may still name it.

    Args:
        first: Name of the method that is suggested, and chosen if the address names none.
        dataset: The data set.
        on_pick: Called when another method is picked, before the page runs again.
    """
    follow_suggestion(first, dataset.fingerprint)
    by_name = {method.card.name: method for method in METHODS}
    wanted = st.query_params.get("method", first)
    name = wanted if wanted in by_name else first

    def pick(other: str) -> None:
        if other in by_name:
            forget_fields()
            st.query_params["method"] = other
            on_pick()

    race = suggested_by_race(dataset, runs_folder())
    heading = SUGGESTED if race is None or race.is_trained else SECOND
    method_cards(name, first, heading,
                 lambda method: lacking(method, dataset) if lacks_labels(method, dataset) else "", pick)
    st.query_params["method"] = name
    return by_name[name]


def lacks_labels(method: type[Method], dataset: Dataset) -> bool:
    """Return whether a method needs labels or pairs that the data set does not have.

    Assigned labels of two classes suffice for a method that needs a few labels.
    """
    needs = method.card.supervision
    if needs == "none" or dataset.labels is not None:
        return False
    return needs != "few" or len(set(assigned_now(dataset).values())) < FEWEST_CLASSES


def explain(method: type[Method], dataset: Dataset, fixed: bool = False) -> None:
    """Show what the method does in two plain sentences, with its terms, paper and evidence behind the "?".

    Args:
        method: The method.
        dataset: The data set.
        fixed: Whether only a head learns, on fixed features.
    """
    card = method.card
    st.markdown(card.summary, help=f"{card.idea}\n\n{card.paper}")
    suggestion = suggested_by_race(dataset, runs_folder())
    judged = None if suggestion is None else suggestion.judged_of(card.name)
    measured = record_words(card.name) if card.supervision == "none" else ""
    if fixed and card.on_fixed_features and dataset.labels is not None:
        st.caption(f":material/info: {card.on_fixed_features}", help=card.source)
        says = ""
    else:
        says = f"{PROMISES[card.promise]}." if dataset.labels is not None else "" if judged is not None else measured
    if text := f"{NEEDS.get(card.supervision, '')}{says}".strip():
        st.caption(text, help=f"{MEASURED_BY} {card.source}")
    if suggestion is not None and judged is not None:  # what was seen on these images comes before other images
        said = suggestion.words_for(judged).removesuffix(".")
        st.caption(f":material/balance: {escaped(said)}, compared with the plain search.",
                   help=f"On other images: {measured} {MEASURED_BY}" if measured else None)
        if judged.setup.method == FROZEN:
            st.caption("The race has tried this step already: trained alone, it gives the same search.")
        won = suggestion.run  # Lab begins with its settings
        if judged.setup.method == card.name and (won is None or won.id != judged.run):
            st.caption("The race has trained it already, for a short time and with settings of its own.")
            view_link("train", label="Settings of the race", icon=":material/content_copy:", width="content",
                      query_params={"like": judged.run}, help="Opens Lab with every field of that run filled in.")


def show_raced(dataset: Dataset) -> None:
    """Show what race and judgments of these images concluded, and the next step; nothing without a race.

    The next step is the main button of the page where no training is advised.
    """
    suggestion = suggested_by_race(dataset, runs_folder())
    if suggestion is None:
        return
    of, own = suggestion.conclusion, chosen_search(dataset.name)
    if own is not None and not suggestion.is_trained:
        show_own(*own, "lab-answer", suggestion.needless, lambda: view_link(
            "retrieval", label="Search with it", icon=SEARCH, width="content", query_params=search_link(*own)))
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="lab-answer"):
        words = f"{suggestion.words} {suggestion.needless}".rstrip()
        st.markdown(f"{conclusion_icon(of)} {escaped(words)}", width="stretch")
        _show_next(suggestion, dataset)


def _show_next(suggestion: Suggestion, dataset: Dataset) -> None:
    """Show the next step after the newest race and judgments."""
    of = suggestion.conclusion
    label, icon, view = NEXT.get(of.action, NEXT[""])
    parameters = {"dataset": dataset.name, "view": "advice"} if view == "data" else (
        {"run": of.use.run} if of.use is not None else {"run": of.race.run, "compare": FINAL})
    if suggestion.is_trained:
        view_link(view, label=label, icon=icon, width="content", query_params=parameters)
    elif st.button(label, icon=icon, type="primary", key="lab-next"):
        open_view(view, query_params=parameters)


def suggested_method(dataset: Dataset) -> str:
    """Return the method that Lab suggests for a data set."""
    return jobs.first_method(dataset, runs_folder(), jobs.winning_example(dataset, runs_folder()))


def explain_missing_labels(method: type[Method], dataset: Dataset) -> None:
    """Say what to do if a method needs labels that the data set does not have."""
    title, few = escaped(dataset.title), method.card.supervision == "few"
    without = escaped(dataset.without_labels)
    sort = "Import the images with one subfolder for each class"
    if dataset.class_columns:
        sort = f"Choose the column {escaped(next(iter(dataset.class_columns)))} as the classes on Data"
    st.info(f"{method.card.title} learns from a few labels, and {title} {without}. Assign labels to images of two "
            "classes or more, then train here." if few else
            f"{method.card.title} learns from the class of every training image, and {title} {without}. {sort}, or "
            "assign labels to a few images and choose a method that needs a few labels.", icon=":material/lightbulb:")
    other = find_method(suggested_method(dataset))
    with st.container(horizontal=True, gap="small"):
        view_link("labels", label="Assign labels", icon=":material/new_label:", width="content")
        view_link("train", label=f"Use {other.card.title}, which needs no labels", width="content",
                     icon=":material/swap_horiz:", query_params={"dataset": dataset.name, "method": other.card.name})
