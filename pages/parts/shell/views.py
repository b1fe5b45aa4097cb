"""The app's pages and their views: which page shows a view, links to it, and former addresses.

A view has a name, such as `clusters`, by which links, keys and tests know it. The address of its page names it in the
parameter `tool`, unless it is the page's first view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.navigation.page import Page

from udml_core.runs import list_runs, runs_folder
from udml_core.runs.analyses import finished_maps

PARAMETER = "tool"
OF_ANY_MAP = {"run", "picked", "selected", "excluded"}
"""Parameters of a former map that mean the same on every map."""
GRID = "grid-of-"
"""How the id of a layout begins that is the grid of a map."""


@dataclass(frozen=True)
class View:
    """A view of a page.

    Attributes:
        page: The page's name in the address.
        title: Title on the page's control.
        help: What the user can do with it, in one sentence.
    """

    page: str
    title: str
    help: str


@dataclass(frozen=True)
class PageCard:
    """A page in the sidebar.

    Attributes:
        title: Its title.
        icon: Its icon.
        help: Its use, in one sentence.
    """

    title: str
    icon: str
    help: str


PAGES: Mapping[str, PageCard] = {
    "home": PageCard("Home", "home", "Watch an example train itself, and find a way in."),
    "lab": PageCard("Lab", "science", "Choose images and a method, and watch a run train."),
    "explore": PageCard("Explore", "explore", "One run: its map, and what the method learned about each image."),
    "search": PageCard("Search", "image_search", "Search with an image, and improve the results without training."),
    "label": PageCard("Label", "new_label", "Assign a few classes or mark pairs, and see how far they reach."),
    "runs": PageCard("Runs", "monitoring", "Queue, curves and evaluation of all runs, side by side."),
    "data": PageCard("Data", "photo_library", "Look at a data set, or import your own images."),
    "learn": PageCard("Learn", "school", "Short lessons on metric learning."),
    "results": PageCard("Results", "table_chart", "Measurements of this project beside the papers' figures."),
}
"""The pages by their names in the address, in the order of the sidebar."""

VIEWS: Mapping[str, View] = {
    "train": View("lab", "One run", "Choose images and a method, and start a run."),
    "sweeps": View("lab", "Several values", "Groups of runs that try several values, and the best of them."),
    "explore": View("explore", "Map", "All images on a map or in a grid, and what the method learned about each."),
    "clusters": View("explore", "Clusters", "Which images share a pseudo-label, and how ε changes it."),
    "neighborhoods": View("explore", "Neighborhoods", "The linear neighborhood of an image, and why PLM finds two "
                                                      "images similar."),
    "triplets": View("explore", "Triplets", "Which anchors, positives and negatives the method compares, and the angle "
                                            "α."),
    "instances": View("explore", "Instances", "Which images an image is pushed away from: two random views of an image "
                                              "should be more similar to each other than to these competitors."),
    "affinity": View("explore", "Affinity", "How a few labels spread to similar images."),
    "pairs": View("explore", "Pairs", "Pairs marked as similar or dissimilar, and the loss of each."),
    "retrieval": View("search", "Search", "Search with an image, and see what training changed."),
    "refine": View("search", "Refine", "Improve the embedding of a finished run without training and without labels: "
                                       "images that share neighbors move closer together."),
    "labels": View("label", "Images", "Assign classes to a few images. They spread along the neighbor graph of an "
                                      "embedding, and methods that learn from few labels can train on them."),
    "pair_labels": View("label", "Pairs", "Mark pairs of images as similar or dissimilar, for methods that learn from "
                                          "pairs."),
    "runs": View("runs", "All runs", "Queue, curves and evaluation of all runs."),
    "compare": View("runs", "Compare", "Two to six runs in one view, and the queries on which they differ."),
    "results": View("results", "Records", "Measurements of this project beside the values that papers report."),
    "benchmark": View("results", "Benchmark", "All methods with one encoder and one budget, ranked by any measure."),
}
"""The views by name, in the order of their page's control. Pages without views show themselves."""

FORMER = (*(name for name in VIEWS if name not in PAGES and name != "pair_labels"), "map", "grid", "lesson_epsilon",
          "home", "advice")
"""Addresses of earlier versions and by names in texts, which open the view that shows the same now."""


def page_of(name: str) -> str:
    """Return the name of the page that shows a view; a page without views is its own."""
    return VIEWS[name].page if name in VIEWS else name


def views_of(page: str) -> list[str]:
    """Return the names of a page's views in order; none if it has no views."""
    return [name for name, view in VIEWS.items() if view.page == page]


def module_of(name: str) -> str:
    """Return the name of the module that draws a view."""
    return f"pages.views.{name}"


def view_in_address(page: str) -> str:
    """Return the view that the address names on a page: its first view without a parameter, or the page itself."""
    names = views_of(page) or [page]
    wanted = st.query_params.get(PARAMETER)
    return wanted if wanted in names else names[0]


def address_of(name: str, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the parameters of a view's address on its page.

    Args:
        name: The view, or a page without views.
        parameters: Further parameters.
    """
    names = views_of(page_of(name))
    return ({PARAMETER: name} if name in names[1:] else {}) | dict(parameters or {})


def view_link(name: str, query_params: Mapping[str, Any] | None = None, **options: Any) -> None:
    """Show a link to a view.

    Args:
        name: The view, or a page without views.
        query_params: Parameters of its address.
        options: Further options of `st.page_link`.
    """
    st.page_link(f"pages/{page_of(name)}.py", query_params=address_of(name, query_params), **options)


def open_view(name: str, query_params: Mapping[str, Any] | None = None) -> None:
    """Open a view; the script ends here.

    Args:
        name: The view, or a page without views.
        query_params: Parameters of its address.
    """
    st.switch_page(f"pages/{page_of(name)}.py", query_params=address_of(name, query_params))


def former_address(name: str, parameters: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the view that shows what a former address showed, and its parameters.

    Args:
        name: The former page, one of `FORMER`.
        parameters: Its parameters.
    """
    if name == "lesson_epsilon":
        kept = {"epsilon": parameters["epsilon"]} if "epsilon" in parameters else {}
        return "learn", {"lesson": "epsilon", "images": "digits", **kept}
    if name == "advice":
        return "data", dict(parameters) | {"view": "advice"}
    if name in ("map", "grid"):
        return "explore", _layout_address(name == "grid", dict(parameters))
    if name == "pairs" and parameters.get("show") in ("give", ["give"]):
        return "pair_labels", {key: value for key, value in parameters.items() if key != "show"}
    return name, dict(parameters)


def _layout_address(is_grid: bool, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that show a map or grid on the page Explore, where grids and epochs are layouts.

    A former address left out the default map, and named the embedding of a grid.
    """
    run = next((run for run in list_runs(runs_folder()) if run.id == "".join(parameters.get("run", []))), None)
    maps = {} if run is None else {analysis.id: analysis.spec().frames for analysis in finished_maps(run)}
    wanted = "".join(parameters.get("map", [])) or next(iter(maps), "")
    if camera := parameters.pop(f"camera-{'grid' if is_grid else 'map'}", None):
        parameters["camera-explore-map"] = camera
    if is_grid:
        frames, moment = maps.get(wanted, ()), "".join(parameters.pop("moment", []))
        return parameters | {"map": f"{GRID}{wanted}"} | (
            {"frame": str(frames.index(moment))} if moment in frames else {})
    is_pinned = wanted in maps and not parameters.keys() <= OF_ANY_MAP
    return parameters | ({"map": wanted} if is_pinned else {})


def former_pages() -> Iterator[Page]:
    """Yield pages that no link shows, which open the new address of each former one."""
    for name in FORMER:
        yield st.Page(_redirect(name), title=name.capitalize(), url_path=name, visibility="hidden")


def _redirect(name: str) -> Callable[[], None]:
    def redirect() -> None:
        parameters = {key: st.query_params.get_all(key) for key in st.query_params}
        open_view(*former_address(name, parameters))

    return redirect
