"""Pairs of images, marked as similar or dissimilar."""

from pages.parts.draw.run_header import run_header
from pages.parts.pairs.labeling import explore_labeling
from pages.parts.shell.run_picker import pick_run
from pages.parts.shell.user_errors import show_user_errors


def draw() -> None:
    """Draw the view."""
    with show_user_errors():
        run = pick_run("Run whose distances propose pairs")
        if run is not None:
            run_header(run)
            explore_labeling(run)
