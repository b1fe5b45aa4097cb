"""Examples of what a race found: queries with results of the plain search and of the advice."""

from __future__ import annotations

import streamlit as st

from udml_core.data.dataset import Dataset
from udml_core.exploration.gallery_content import Tile
from udml_core.exploration.race import SHOWN_RESULTS, Outcome, Race
from udml_core.exploration.race_measured import Serves
from udml_core.exploration.search_names import plain_name

from ..draw.gallery import gallery, tile_of
from ..shell.run_picker import open_search

SIDE = 72
CAPTIONS: dict[Serves, str] = {
    "first": "Random queries whose first result changes; the upper row is the plain search.",
    "groups": "Random queries whose group changes: each row has what only this search finds, with its rank; the upper "
              "row is the plain search."}


def show_examples(race: Race, outcome: Outcome, dataset: Dataset) -> None:
    """Show the stored queries of a candidate, each with a row of the plain search above a row of the candidate.

    Args:
        race: The race.
        outcome: The candidate.
        dataset: The images of the race.
    """
    examples = race.examples_of(outcome)
    if not examples:
        return
    names = "plain", plain_name(outcome.setup, race.start).removeprefix("the ").removesuffix(" search")
    for place, example in zip(st.columns(len(examples)), examples, strict=True):
        with place.container(gap="xxsmall"):
            for name, results in zip(names, (example.before, example.after), strict=True):
                tiles = [Tile(example.query, dataset.caption(example.query), "query", name),
                         *(tile_of(dataset, image, badge=str(rank)) for image, rank in results)]
                clicked = gallery(dataset, tiles, f"A query with results of the {name} search",
                                  f"race-example-{example.query}-{name}", SIDE, columns=1 + SHOWN_RESULTS)
                if clicked is not None:
                    open_search(dataset, clicked)
    st.caption(f"{CAPTIONS[race.serves]} Click an image to search with it.")
