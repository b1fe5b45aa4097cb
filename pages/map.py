"""Maps of what a run learnt: one cursor through training, two side by side, and how far they can be trusted."""

import numpy as np
import streamlit as st

from pages.parts.base.address import choice_from_address, number_from_address, write_address
from pages.parts.base.analyses import frame_words
from pages.parts.base.run_picker import pick_run
from pages.parts.base.selection import Selection, selection
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.gallery import gallery, tile_of
from pages.parts.components.scatter import Color, map_file, scatter
from pages.parts.components.slider import live_slider
from pages.parts.curves.similarities import similarity_pictures, similarity_words
from pages.parts.kit.downloads import Download, image_list, share
from pages.parts.kit.figures import curve, curve_names
from pages.parts.map.columns import own_column
from pages.parts.map.placing import bring_images, placed_images
from pages.parts.map.shown_map import (
    UNITS,
    Shown,
    colorings,
    distortion,
    go_to,
    load_map,
    nearest_images,
    new_map,
    pick_color,
    pick_map,
    picked_image,
    sample_clusters,
    selected_images,
)
from pages.parts.map.uncertainty import LABEL, certain_and_uncertain
from udml_core.exploration.clusters import summary
from udml_core.exploration.maps import neighborhood_change
from udml_core.runs import Run, find_run, runs_folder

CHANGED = 48
CURVES = 3
COMPARISONS = {"": "Nothing", "frame": "Another moment of this map", "run": "Another map or run"}


def cursor(run: Run, map_id: str, parameter: str, label: str, usual: int = -1) -> Shown:
    """The frame that the cursor stands at, kept in the address."""
    count = len(load_map(run, map_id, 0).projection.frames)
    start = int(number_from_address(parameter, usual % count, 0, count - 1))
    if count == 1:
        return load_map(run, map_id, 0)
    frames = load_map(run, map_id, 0).projection.frames
    marks = {float(place): frame_words(frames[place]) for place in sorted({0, count - 1})}
    place = round(live_slider(label, 0, count - 1, start, 1, f"{parameter}-{map_id}", play=True, marks=marks))
    write_address(parameter, str(place), str(usual % count))
    return load_map(run, map_id, place)


def draw(shown: Shown, key: str, color: Color, held: Selection, linked: bool, picked: int | None) -> int | None:
    """One map with its title and its distortion; the image that was just picked on it."""
    title = f"{shown.run.spec().dataset_title}, {frame_words(shown.name)}"
    st.markdown(f"**{title}**")
    rows = np.flatnonzero(shown.projection.indices == (-1 if picked is None else picked))
    marks = [{"row": int(row), "word": "picked", "lines": shown.neighbors[row].tolist()} for row in rows]
    guests = placed_images(shown.run, shown.map_id, shown.name)
    words = f"Map of {title}, {len(shown.projection.indices)} images"
    clicked = scatter(shown.dataset, shown.layout, color, held, words, key, marks=marks, placed=guests, linked=linked)
    distortion(shown)
    return clicked


def at_cursor(shown: Shown) -> None:
    """Curves and clusters of the moment that the cursor stands at."""
    if shown.epoch is None:
        return
    rows = shown.run.metrics()[0]
    names = [name for name in ("sample map@r", "loss", "neighbor stability") if name in curve_names(rows)]
    clusters = sample_clusters(shown.run, shown.epoch)
    labels = None if shown.dataset.labels is None else shown.dataset.labels[shown.run.sample_indices()]
    found = summary(clusters, labels)
    purity = "" if found.purity is None else f", purity {100 * found.purity:.1f} %"
    st.markdown(f"**Clusters at this moment:** {found.count}, of them {found.singletons} of a single image; "
                f"{100 * found.coverage:.0f} % of the sample lie in larger ones{purity}.")
    for column, name in zip(st.columns(CURVES), names, strict=False):
        with column:
            curve(name, {"run": rows}, f"map-{name}", shown.epoch)


def own_kind(shown: Shown) -> None:
    """How near images are to their own kind against others at the moment that the cursor stands at."""
    numbers = shown.run.epoch_numbers()
    moments = {"initial": numbers[0], "final": shown.run.kept_epoch()} if numbers else {}
    epoch = moments.get(shown.name) if shown.epoch is None else shown.epoch
    if epoch is not None:
        with st.expander("Own kind against others at this moment", icon=":material/join_inner:"):
            similarity_pictures(shown.run, epoch, "map-near")
            st.caption(similarity_words(shown.run))


def changed(first: Shown, second: Shown) -> int | None:
    """The images whose neighborhoods differ most between two maps."""
    change = neighborhood_change(*((one.projection.indices, one.neighbors) for one in (first, second)))
    if not len(change.indices):
        st.info("The two maps have no image in common.", icon=":material/info:")
        return None
    st.subheader("Whose neighborhoods changed most")
    st.caption(f"Of the {first.neighbors.shape[1]} nearest in the embedding, {100 * change.kept.mean():.0f} % are the "
               f"same in both, over {len(change.indices):,} shared images. The badge says how many of one image's are.")
    tiles = [tile_of(first.dataset, int(change.indices[place]), badge=f"{100 * change.kept[place]:.0f} % kept")
             for place in change.most(CHANGED)]
    return gallery(first.dataset, tiles, "Images whose neighborhoods changed most", "map-changed", 72, height=240)


def exports(shown: Shown, color: Color, held: Selection) -> None:
    title = f"{shown.run.spec().dataset_title}, {frame_words(shown.name)}"
    chosen = held.ids if len(held.ids) else shown.projection.indices
    with st.container(horizontal=True):
        bring_images(shown)
        own_column(shown.dataset)
        share([Download("Map as one HTML file", "map.html", "text/html",
                        lambda: map_file(shown.dataset, shown.layout, color, held, title, UNITS)),
               Download("Selection as a list", "selection.csv", "text/csv",
                        lambda: image_list(shown.dataset, chosen))], "map")


@st.fragment
@show_user_errors()
def explore(run_id: str, map_id: str, other_id: str | None, other_map: str | None) -> None:
    """Everything that moves with the cursor, the colour or the selection."""
    run = find_run(run_id, runs_folder())
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        shown = cursor(run, map_id, "frame", "Moment")
        other = None
        if other_id and other_map:
            usual = 0 if (other_id, other_map) == (run_id, map_id) else -1
            other = cursor(find_run(other_id, runs_folder()), other_map, "frame2", "Moment of the second map", usual)
    with right:
        color = pick_color(shown, "Colour")
    held = selection(shown.dataset)
    picked = picked_image(shown)
    clicks = []
    if other is None:
        clicks.append(draw(shown, "map", color, held, False, picked))
    else:
        for column, one, key in zip(st.columns(2), (shown, other), ("map", "map2"), strict=True):
            with column:
                same = one is shown or color.label not in colorings(one)
                clicks.append(draw(one, key, color if same else colorings(one)[color.label](), held, True, picked))
    st.caption(UNITS)
    if picked is not None:
        clicks.append(nearest_images(shown, picked, frame_words(shown.name), "map-near"))
    at_cursor(shown)
    own_kind(shown)
    if color.label == LABEL:
        clicks.append(certain_and_uncertain(shown.run, shown.dataset, shown.projection.indices, color))
    if other is not None:
        clicks.append(changed(shown, other))
    clicks.append(selected_images(shown.dataset, held, "map-selected"))
    exports(shown, color, held)
    go_to(clicks)


st.title("Map")
with show_user_errors():
    chosen = pick_run()
    if chosen is not None:
        row = st.columns([4, 2, 1.2], vertical_alignment="bottom")
        with row[0]:
            first_map = pick_map(chosen)
        with row[2]:
            new_map(chosen)
        if first_map is not None:
            with row[1]:
                kind = choice_from_address("compare", list(COMPARISONS), "")
                kind = st.selectbox("Beside it", list(COMPARISONS), list(COMPARISONS).index(kind),
                                    format_func=COMPARISONS.__getitem__, key="choose-compare")
                write_address("compare", kind)
            second: tuple[str | None, str | None] = (chosen.id, first_map) if kind == "frame" else (None, None)
            if kind == "run":
                columns = st.columns(2)
                with columns[0]:
                    images = chosen.spec().fingerprint
                    other_run = pick_run("Second run", "run2", lambda run: run.spec().fingerprint == images)
                with columns[1]:
                    second = (other_run.id, pick_map(other_run, "map2", "Second map")) if other_run else second
            explore(chosen.id, first_map, *second)
