"""Pages that show a run's images, through Streamlit's AppTest, after the folder of the images has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from pages.parts.compare.seed_means import gap_interval
from tests.app.opening import opened, texts
from tests.running import worked, write_digits
from udml_core.runs import Run

METHODS = {"rpml": {"dimension": 4, "epochs": 1, "steps": 1, "n_neighbors": 5, "epsilon": 0.9},
           "plm": {"dimension": 4, "epochs": 1, "views": 2, "proxies": 4}}
IMAGE_COMPONENTS = ("udml_gallery", "udml_scatter")
pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def changed(places: Path) -> dict[str, Run]:
    """Runs by method, on a folder of photos most of which were deleted after training."""
    folder = write_digits(places / "photos", 120, by_class=False)
    runs = {method: worked(places / "runs", method=method, dataset=str(folder), fields=fields)
            for method, fields in METHODS.items()}
    for path in sorted(folder.iterdir())[10:]:
        path.unlink()
    return runs


@pytest.mark.parametrize(("page", "method"), [
    ("labels", "rpml"), ("affinity", "rpml"), ("clusters", "rpml"), ("triplets", "rpml"), ("explore", "rpml"),
    ("instances", "rpml"), ("neighborhoods", "plm")])
def test_pages_show_an_error_and_no_image_when_the_images_changed(page: str, method: str,
                                                                 changed: dict[str, Run]) -> None:
    test = opened(page, run=changed[method].id)
    assert not test.exception
    assert all("has changed since this run" in error.value for error in test.error)
    assert test.error
    assert not [element for element in test.get("bidi_component")
                if element.proto.component_name in IMAGE_COMPONENTS]


def test_measures_are_compared_without_images_and_without_an_interval(changed: dict[str, Run]) -> None:
    assert gap_interval([changed["rpml"]], [changed["plm"]]) is None


def test_curves_without_images_are_still_shown(changed: dict[str, Run]) -> None:
    assert "effective rank" in texts(opened("affinity", run=changed["rpml"].id))
