"""Pages that show a run's images, through Streamlit's AppTest, after the folder of these images has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.opening import opened, texts
from tests.running import worked, write_digits
from udml_core.runs import Run

METHODS = {"rpml": {"dimension": 4, "epochs": 1, "steps": 1, "n_neighbors": 5, "epsilon": 0.9},
           "plm": {"dimension": 4, "epochs": 1, "views": 2, "proxies": 4}}
PICTURES = ("udml_gallery", "udml_scatter")
pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def changed(places: Path) -> dict[str, Run]:
    """Runs by method, on a folder of photos of which most are gone by now."""
    folder = write_digits(places / "photos", 120, by_class=False)
    runs = {method: worked(places / "runs", method=method, dataset=str(folder), fields=fields)
            for method, fields in METHODS.items()}
    for path in sorted(folder.iterdir())[10:]:
        path.unlink()
    return runs


@pytest.mark.parametrize(("page", "method"), [
    ("labels", "rpml"), ("affinity", "rpml"), ("clusters", "rpml"), ("triplets", "rpml"), ("map", "rpml"),
    ("instances", "rpml"), ("neighborhoods", "plm")])
def test_other_images_are_not_taken_for_those_of_the_run(page: str, method: str, changed: dict[str, Run]) -> None:
    test = opened(page, run=changed[method].id)
    assert not test.exception
    assert all("has changed since this run was started" in one.value for one in test.error)
    assert test.error
    assert not [one for one in test.get("bidi_component") if one.proto.component_name in PICTURES]


def test_what_needs_no_image_is_shown_all_the_same(changed: dict[str, Run]) -> None:
    assert "effective rank" in texts(opened("affinity", run=changed["rpml"].id))
