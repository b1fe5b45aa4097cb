"""What the user looks for in the images of a folder, said once: all matches or one, and what counts as the same."""

from __future__ import annotations

from functools import partial

import streamlit as st

from udml_core.data.dataset import Dataset
from udml_core.data.encoders import EncoderSpec
from udml_core.exploration.race_measured import Serves
from udml_core.runs import runs_folder
from udml_core.runs.aims import keep_aim, kept_aim
from udml_core.work.jobs.advising import find_features, newest_aim

from ..shell.address import choose_segment
from ..shell.meaning import choose_words, words_for_same
from ..shell.run_status import escaped

WORDS: dict[Serves, str] = {"groups": "All of them: the whole group", "first": "One match: the first result"}
MEANINGS: dict[Serves, str] = {
    "first": "The nearest image should show the same kind{words}.",
    "groups": "All images of the same kind{words} should come before all others."}
ALL_PAGES = "All pages answer for this choice, such as which search is advised."
LOOKS = "Judges compare looks; your own eyes decide what is right."


def choose_aim(dataset: Dataset, encoder: EncoderSpec) -> Serves:
    """Choose what the user looks for, and what counts as the same; all pages answer for it.

    Without a choice, the newest race decides, else the whole group.

    Args:
        dataset: The data set.
        encoder: The encoder of the frozen features.
    """
    if "serves" not in st.query_params:
        kept = kept_aim(runs_folder(), dataset.name) or newest_aim(dataset, encoder, runs_folder()) or "groups"
        st.query_params["serves"] = kept
    with st.container(horizontal=True, vertical_alignment="top", gap="medium", key="advice-aim"):
        served = choose_segment("What do you look for?", "serves", WORDS, "groups", key="advice-serves",
                                keeps_default=True, then=partial(_keep, dataset, encoder))
        with st.container(width=300):
            choose_words(dataset, "Each question names these words when you judge.")
    if kept_aim(runs_folder(), dataset.name) not in (None, served):  # a link led to the other answer
        _keep(dataset, encoder, served)
    words = escaped(words_for_same(dataset))
    st.caption(f"{MEANINGS[served].format(words=words and f' ({words})')} {LOOKS}", help=ALL_PAGES)
    return served


def _keep(dataset: Dataset, encoder: EncoderSpec, served: Serves) -> None:
    """Keep the choice with the images, if there is anything of them to keep it with."""
    if (run := find_features(dataset, encoder, runs_folder())) is not None:
        keep_aim(run, served)
