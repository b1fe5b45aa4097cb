"""Former location of `frame` and `coloring`; import from there."""

from pages.parts.map.coloring import colorings, training_clusters
from pages.parts.map.frame import UNITS, covering_map, load_map
from pages.parts.map.frame import show_distortion as distortion

__all__ = ["UNITS", "colorings", "covering_map", "distortion", "load_map", "training_clusters"]
