"""Why two images are similar: an image's linear neighborhood, and how a second one lies along it and across it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import streamlit as st
from PIL import Image

from pages.parts.base.address import choice_from_address, number_from_address, write_address
from pages.parts.base.cached import dataset_of, load_retrieval, load_split
from pages.parts.base.run_picker import open_search, pick_run
from pages.parts.base.selection import selection
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.gallery import Mark, clicked_tile, gallery, mark_of, tile_of
from pages.parts.components.scatter import scatter
from pages.parts.components.slider import live_slider
from pages.parts.kit.downloads import Download, share, table_file
from pages.parts.kit.figures import table_behind
from pages.parts.kit.pictures import picture
from pages.parts.map.shown_map import UNITS, colorings, covering_map, distortion
from pages.parts.neighborhoods.flat import (
    because,
    contours,
    direction_images,
    flat_picture,
    heat_picture,
    quality_bars,
    show_split,
)
from pages.parts.neighborhoods.proxies import explore_proxies, proxies_of
from pages.parts.retrieval.query import LOOKED_AT, Brought, brought_now, embedded, look_at
from udml_core.arrays import Array
from udml_core.data.dataset import Dataset
from udml_core.declaration import describe
from udml_core.explanations import LinearNeighborhoods
from udml_core.exploration import neighborhoods as views
from udml_core.methods import PLM
from udml_core.retrieval import Which
from udml_core.runs import Run, find_run, runs_folder

NEAREST, MOST_CANDIDATES, SHOWN, SIDES = 200, 20, 48, 5
SET, LARGEST_SET, USUAL_SECOND = 60, 150, 9
COUNTED = (10, 50, 200)
EMBEDDINGS: dict[Which, str] = {"final": "after training", "initial": "before training"}
SLIDERS = {"candidates": "k, nearest that may enter", "flat": "m, dimensions of a flat",
           "threshold": "T, least share a flat must hold", "n_alpha": "Nα, how fast s falls across a flat",
           "n_beta": "Nβ, how fast s falls along it"}
CLICKS = {"second": "compares with it", "first": "looks at it"}


@dataclass(frozen=True)
class Looked:
    """What is looked at: a run's embedding, the first image (one of the data set, or one from outside), its nearest.

    index: −1 for an image from outside. name, image: what it is called, and itself.
    """

    run: Run
    dataset: Dataset
    which: Which
    index: int
    name: str
    image: Image.Image
    around: views.Surroundings

    @property
    def near(self) -> Array:
        """The data set positions of its nearest."""
        return self.around.rows[1:]

    @cached_property
    def same(self) -> Array | None:
        """Which of the nearest are of its class."""
        labels = self.dataset.labels
        return None if labels is None or self.index < 0 else labels[self.near] == labels[self.index]

    @cached_property
    def plainly(self) -> str:
        """By what its nearest are found, in a word: for unit embeddings the order by distance is the cosine's."""
        return "cosine" if self.run.is_normalized(self.which) else "distance"

    def mark(self, index: int) -> Mark:
        return mark_of(self.dataset, index, self.index) if self.index >= 0 else ""


@st.cache_resource(max_entries=16, show_spinner="Searching the nearest …")
def surroundings(folder: str, which: Which, image: int | str, count: int, _place: Array | None) -> views.Surroundings:
    """An image, by its position or by the digest of its file, whose place is given, with its nearest, each with its
    candidates."""
    embedding = find_run(folder, runs_folder()).embeddings(which)
    if isinstance(image, int):
        rows = np.append(image, views.nearest_rows(embedding, image, count))
        return views.surroundings(embedding, rows, MOST_CANDIDATES)
    assert _place is not None
    return views.surroundings(embedding, views.nearest_rows(embedding, _place, count), MOST_CANDIDATES, _place)


@st.cache_resource(max_entries=16, show_spinner="Searching the candidates …")
def surroundings_of(folder: str, which: Which, rows: tuple[int, ...]) -> views.Surroundings:
    """Images of the data set with the candidates of each."""
    return views.surroundings(find_run(folder, runs_folder()).embeddings(which), np.array(rows), MOST_CANDIDATES)


def first_image(run: Run, dataset: Dataset, which: Which) -> Looked:
    """What is looked at: an image that was brought, the one in the address, or the first of the test half."""
    brought: Brought | None = st.session_state.get(LOOKED_AT)
    folder = str(run.folder)
    if brought is not None:
        place = embedded(load_retrieval(run.id), brought, which)
        around = surroundings(folder, which, brought.digest, NEAREST, place)
        return Looked(run, dataset, which, -1, brought.name, brought.image, around)
    usual = int(load_split(run).test[0])
    index = int(number_from_address("picked", usual, 0, len(dataset) - 1))
    around = surroundings(folder, which, index, NEAREST, None)
    return Looked(run, dataset, which, index, dataset.caption(index), dataset.images[index], around)


def sliders(run: Run) -> views.Geometry:
    """The geometry, as the run has it where it is PLM's, else as PLM has it by default; kept in the address."""
    fields = {field.name: field for field in describe(PLM)}
    given = run.spec().build_method().model_dump()
    values = {}
    for row in (tuple(SLIDERS)[:3], tuple(SLIDERS)[3:]):
        for column, name in zip(st.columns(len(row)), row, strict=True):
            low, high, step = fields[name].slider
            high = min(high, MOST_CANDIDATES) if name == "candidates" else high
            usual = float(given.get(name, fields[name].default))
            with column:
                values[name] = live_slider(SLIDERS[name], low, high, number_from_address(name, usual, low, high), step,
                                           f"geometry-{name}", marks={usual: "this run" if name in given
                                                                          else "PLM's default"})
            write_address(name, f"{values[name]:g}", f"{usual:g}")
    usual_admission = bool(given.get("admission", True))
    kept = choice_from_address("admission", ["yes", "no"], "yes" if usual_admission else "no") == "yes"
    admission = st.toggle("Refuse candidates that do not fit", kept, key="geometry-admission",
                          help="Without it all k candidates are members, as in the paper's first ablation.")
    write_address("admission", "yes" if admission else "no", "yes" if usual_admission else "no")
    if given.get("similarity") == "binary":
        st.caption("This run was trained with similarities of 0 and 1, by membership alone. The s shown here is "
                   "eq. 5's, which it did not use.")
    return views.Geometry(int(values["candidates"]), int(values["flat"]), values["threshold"], values["n_alpha"],
                          values["n_beta"], admission)


def on_the_map(looked: Looked, hoods: LinearNeighborhoods, second: int) -> int | None:
    """The image, its members and those that were refused, and the second image, among all images."""
    shown = covering_map(looked.run, np.arange(len(looked.dataset)))
    if shown is None:
        st.page_link("pages/map.py", label="Compute a map of all images, and this image is shown on it",
                     icon=":material/scatter_plot:", query_params={"run": looked.run.id})
        return None
    near, members = hoods.neighbors[0], hoods.members[0]
    marks = [{"row": int(index), "word": "", "lines": []} for index in near[~members]]
    marks.append({"row": second, "word": "second", "lines": []})
    if looked.index >= 0:
        marks.append({"row": looked.index, "word": "first", "lines": near[members].tolist()})
    picked = scatter(looked.dataset, shown.layout, next(iter(colorings(shown).values()))(), selection(looked.dataset),
                     f"Map of all images, with {looked.name} joined to its members", "neighborhood-map", marks=marks,
                     height=430)
    st.caption("Lines lead to the members, bare rings are refused candidates. Click a point to look at its image.")
    distortion(shown)
    st.caption(UNITS)
    return picked


def flat_view(looked: Looked, hoods: LinearNeighborhoods) -> None:
    """The candidates in the image's own basis."""
    inside, across = views.coordinates(looked.around, hoods)
    directions = False
    if inside.shape[1] > 2:
        words = {"height": "flat and height over it", "directions": "three directions"}
        directions = st.segmented_control("Axes", list(words), default="height", required=True, key="neighborhood-axes",
                                          format_func=words.__getitem__) == "directions"
    flat_picture(inside, across, hoods, [looked.dataset.caption(int(one)) for one in hoods.neighbors[0]], directions)


def candidates(looked: Looked, hoods: LinearNeighborhoods, second: int) -> int | None:
    """Members and refused as images, with their quality; the one that was just picked."""
    members, images, untested = hoods.members[0], hoods.neighbors[0], hoods.basis.shape[2]
    quality, worst = views.floored(hoods.quality[0]), views.floored(hoods.worst[0])
    st.caption(f"A flat of m dimensions holds any m points, so the {untested} nearest are members without a test. Each "
               "further one must leave all in the set with at least T.")
    clicks = []
    for column, among, word, values, label in zip(
            st.columns(2), (members, ~members), ("Members", "Refused"), (quality, worst),
            ("quality in the final flat", "worst quality in the set at its test, below T"), strict=True):
        with column:
            st.markdown(f"**{word}: {among.sum()}** · the badge is the rank by distance and the {label}")
            if among.any():
                tiles = [tile_of(looked.dataset, images[rank], looked.mark(images[rank]),
                                 f"{rank + 1}. " + ("not tested" if rank < untested else f"{values[rank]:g} %"))
                         for rank in np.flatnonzero(among)]
                clicks.append(gallery(looked.dataset, tiles, word, f"neighborhood-{word.lower()}", 84, second))
    table_behind("The candidates as a table", pd.DataFrame({
        "Rank": np.arange(1, len(members) + 1), "Image": [looked.dataset.caption(int(one)) for one in images],
        "Member": members, "Worst quality at its test, %": worst, "Its quality in the final flat, %": quality,
        "Off the flat": views.coordinates(looked.around, hoods)[1].round(4)}))
    return clicked_tile(clicks)


def meanings(looked: Looked, hoods: LinearNeighborhoods, second: int) -> int | None:
    """The images that each direction of the flat leads to; the one that was just picked."""
    st.header("What each direction means")
    st.caption(f"Of the {len(looked.near)} nearest, the {SIDES} on either side that lie most purely in a direction, "
               "from one end through the image to the other. The badge is the side, and the share of the squared "
               "distance that lies in this direction: near 100 % it alone leads there. Shares under 5 % are left out.")
    clicks = []
    for number, along in enumerate(views.along_directions(looked.around.centers[1:], looked.around.centers[0],
                                                          hoods.basis[0], SIDES), 1):
        clicks.append(direction_images(looked.dataset, looked.near[along.places], along, number, "neighborhood",
                                       looked.index, second))
    return clicked_tile(clicks)


def second_image(looked: Looked, hoods: LinearNeighborhoods, geometry: views.Geometry, second: int,
                 similar: Array) -> None:
    """Two images: v split by both flats, to scale, and why they are as similar as they are."""
    st.header("How similar two are, and why")
    alone = surroundings_of(str(looked.run.folder), looked.which, (second,))
    found = views.pair(np.concatenate([looked.around.centers[:1], alone.centers]),
                       np.concatenate([hoods.basis[:1], alone.neighborhoods(geometry).basis]), geometry)
    st.markdown(f"First **{looked.name}**, second **{looked.dataset.caption(second)}**"
                + (f": rank {1 + int((similar > found.similarity + 1e-6).sum())} by s and "
                   f"{1 + int(np.flatnonzero(looked.near == second)[0])} by {looked.plainly} among the {len(similar)} "
                   "nearest."
                   if second in looked.near else "."))
    for column, first in zip(st.columns(2), (True, False), strict=True):
        with column:
            show_split(found, (looked.image, looked.dataset.images[second]), first)
    st.markdown(because(found, float(np.median(similar)), looked.plainly == "cosine"))
    st.caption("Both drawings are to scale and have the same scale. Blue: the flat, and p, the way along it. Orange: "
               "o, the way across. Dashed: the whole way.")
    rows = [(part.along, part.across, part.alpha, part.beta, part.similarity) for part in (found.first, found.other)]
    table_behind("The pair as a table", pd.DataFrame(
        [(whose, *row) for whose, row in zip(("first image's", "second image's"), rows, strict=True)],
        columns=["In the flat of the", "Along, p", "Across, o", "α", "β", "s′"]))
    with st.container(horizontal=True):
        st.button("Look at the second one", icon=":material/swap_horiz:", key="neighborhood-swap", on_click=look_at,
                  args=(second, looked.index))
        if st.button("Search with it", icon=":material/image_search:", key="neighborhood-search"):
            open_search(looked.dataset, second)


def rankings(looked: Looked, similar: Array, second: int) -> int | None:
    """The nearest by s beside the nearest by cosine or distance, and what each gets right."""
    st.header(f"The {len(looked.near)} nearest, by s and by {looked.plainly}")
    by_s = np.argsort(-similar, kind="stable")
    clicks = []
    for column, words, order, values in zip(st.columns(2), ("By s, along the flats", f"By {looked.plainly}"),
                                            (by_s, np.arange(len(by_s))), (similar, None), strict=True):
        with column:
            right = ""
            if looked.same is not None:
                counts = tuple(count for count in COUNTED if count <= len(order))
                found = views.hits(looked.same[order], counts)
                right = " · of its class: " + ", ".join(f"**{hit}** of {count}"
                                                        for hit, count in zip(found, counts, strict=True))
            st.markdown(f"**{words}**{right}")
            tiles = []
            for rank, place in enumerate(order[:SHOWN].tolist()):
                moved = place - rank
                badge = f"{rank + 1}." if values is None else f"{rank + 1}. {values[place]:.2f}" + (
                    f" ↑{moved}" if moved > 0 else f" ↓{-moved}" if moved < 0 else "")
                index = int(looked.near[place])
                tiles.append(tile_of(looked.dataset, index, looked.mark(index), badge))
            clicks.append(gallery(looked.dataset, tiles, words, f"ranking-{'plain' if values is None else 's'}", 88,
                                  second, 360))
    st.caption(f"Arrows: how many places an image rises or falls against the order by {looked.plainly}."
               + (" ✓ it is of the image's class, ✕ it is not." if looked.same is not None else ""))
    return clicked_tile(clicks)


def heat_map(looked: Looked, geometry: views.Geometry) -> None:
    """s among a set against the true classes."""
    st.header("s against the true classes")
    labels = looked.dataset.labels
    if labels is None:
        st.caption("These images have no classes to hold similarities against.")
        return
    held = selection(looked.dataset).ids
    nearest = np.unique(np.append(looked.near[:SET], [looked.index] if looked.index >= 0 else []).astype(np.int64))
    chosen = held if 1 < len(held) <= LARGEST_SET else nearest
    found = views.heat(surroundings_of(str(looked.run.folder), looked.which, tuple(chosen.tolist())), geometry,
                       labels[chosen])
    words = f"The {len(chosen)} selected images" if chosen is held else (
        f"The image and its {min(SET, len(looked.near))} nearest; select 2 to {LARGEST_SET} on a map to see those"
        + (f" ({len(held):,} are selected, too many to draw)" if len(held) > LARGEST_SET else ""))
    st.caption(f"{words}. Blocks on the diagonal are the classes.")
    heat_picture(found, [looked.dataset.class_names[one] for one in np.unique(labels[chosen])])
    if np.isfinite(found.correlation):
        st.markdown(f"Mean s within a class **{found.within:.3f}**, between classes **{found.between:.3f}**; "
                    f"correlation with the true similarity **{found.correlation:.2f}** (1 would be perfect).")
    else:
        st.caption("All are of one class, or each of its own: nothing to hold s against.")


@st.fragment
@show_user_errors()
def explore(run_id: str, which: Which) -> None:
    """The sliders, the image, and everything that re-forms with them."""
    run = find_run(run_id, runs_folder())
    dataset = dataset_of(run)
    found = brought_now("neighborhood-paste", 1)
    if found:
        st.session_state[LOOKED_AT] = found[0]
    looked = first_image(run, dataset, which)
    with st.container(horizontal=True, vertical_alignment="center"):
        picture(looked.image, 96, f"The image that is looked at: {looked.name}")
        st.markdown(f"**{looked.name}**  \nClick a point on the map to look at another image, or bring one.")
        if looked.index < 0:
            st.button("Take it away", icon=":material/close:", key="neighborhood-away", on_click=look_at)
    geometry = sliders(run).within(looked.around.candidates.shape[1], looked.around.points.shape[1])
    if geometry.flat < number_from_address("flat", geometry.flat):
        st.caption(f"Used is m = {geometry.flat}: a flat has no more dimensions than candidates or the embedding.")
    hoods = looked.around.neighborhoods(geometry)
    similar = views.similarities(looked.around, hoods, geometry)[1:]
    usual = int(looked.near[min(USUAL_SECOND, len(looked.near) - 1)])
    second = int(number_from_address("second", usual, 0, len(dataset) - 1))
    second = usual if second == looked.index else second
    left, right = st.columns(2, gap="medium")
    with left:
        picked = on_the_map(looked, hoods, second)
    with right:
        flat_view(looked, hoods)
        quality_bars(hoods, geometry.threshold)
    click = st.segmented_control("A click on an image below", list(CLICKS), default="second", required=True,
                                 key="neighborhood-click", format_func=CLICKS.__getitem__)
    clicks = [candidates(looked, hoods, second)]
    second_image(looked, hoods, geometry, second, similar)
    clicks += [meanings(looked, hoods, second), rankings(looked, similar, second)]
    heat_map(looked, geometry)
    with st.expander("Lines of equal similarity in a plane", icon=":material/lens_blur:"):
        st.caption("A point in the middle whose flat is the horizontal axis, at the Nα and Nβ above. From Nα = 2Nβ on "
                   "similarity falls faster across the flat than along it at every distance; below that, not close to "
                   "the point.")
        contours(geometry.n_alpha, geometry.n_beta)
    share([Download("The nearest as a table", "neighborhood.csv", "text/csv", lambda: table_file(
        dataset, looked.near, {"similarity": similar, f"{looked.plainly} rank": np.arange(1, len(similar) + 1)}))],
          "neighborhood")
    clicked = clicked_tile(clicks)
    first = clicked if picked is None and click == "first" else picked
    if first is not None:
        look_at(first)
        st.rerun(scope="fragment")
    if clicked is not None:
        write_address("second", str(clicked))
        st.toast(f"The second image is now {dataset.caption(clicked)}.", icon=":material/compare_arrows:")
        st.rerun(scope="fragment")


st.title("Neighborhoods")
with show_user_errors():
    run = pick_run()
    if run is not None:
        usual: Which = "final"
        which = choice_from_address("embedding", list(EMBEDDINGS), usual)
        which = st.segmented_control("Embedding", list(EMBEDDINGS), default=which, required=True,
                                     key="neighborhood-embedding", format_func=EMBEDDINGS.__getitem__) or usual
        write_address("embedding", which, usual)
        explore(run.id, which)
        if proxies_of(run) is not None:
            explore_proxies(run.id)
