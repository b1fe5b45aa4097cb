"""Sliders above the map that belong to the open panel, and act on the map and the panel at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..clusters.picture import cluster_color
from ..maps.scatter import Ring
from ..maps.spreading import has_few_labels, spread_color
from .cluster import pick_clustering
from .constraints import pick_alpha, triplet_marks
from .instance import competitor_marks, pick_temperature
from .labels import pick_gamma
from .neighborhood import members_of, pick_geometry
from .panels import open_panel
from .toolbar import MapChoice
from .workbench import Workbench


def pick_settings(bench: Workbench, choice: MapChoice) -> dict[str, Any]:
    """Show the sliders of the open panel.

    Args:
        bench: The workbench without settings.
        choice: The map.

    Returns:
        The settings by their names in a workbench.
    """
    run = bench.run
    match open_panel(bench):
        case "cluster":
            return {"clustering": pick_clustering(run)}
        case "neighborhood":
            return {"geometry": pick_geometry(run)}
        case "triplets":
            return {"alpha": pick_alpha(run, "explore-alpha")}
        case "instance":
            return {"temperature": pick_temperature(run)}
        case "labels" if has_few_labels(run, choice.shown.dataset):
            return {"gamma": pick_gamma(run)}
    return {}


def apply_settings(bench: Workbench, choice: MapChoice) -> tuple[MapChoice, list[Ring] | None]:
    """Return the map with the colors of the settings, and the images that rings and lines mark.

    Without marks, lines join the current image with its neighbors.
    """
    if bench.clustering is not None:
        return replace(choice, color=cluster_color(bench.clustering, choice.shown.projection.indices)), None
    if bench.gamma is not None:
        return replace(choice, color=spread_color(choice.shown, bench.gamma)), None
    if bench.alpha is not None:
        return choice, triplet_marks(bench, bench.alpha)
    if bench.temperature is not None:
        return choice, competitor_marks(bench, bench.temperature)
    return choice, None if bench.geometry is None else [Ring(bench.focus, "current", members_of(bench))]
