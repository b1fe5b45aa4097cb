"""Refinement on the page Search: switches that show the recipe in view, its verdict, and its name in plain words."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

from pages.views.retrieval import PART, SAME, SEARCH
from tests.app.opening import opened, switched, texts
from tests.app.test_browser import settle
from tests.app.test_refine_page import components
from tests.running import worked
from tests.runs.test_opinions import BETTER, UNCLEAR, keep_opinion
from udml_core.runs import Run
from udml_core.runs.analyses import plan_analysis
from udml_core.runs.opinions import OF_REFINEMENTS
from udml_core.work.workers.analyse import keep

RECIPE = "whiten+average:k=5"
STEPS = ("whiten", "average", "rerank", "diffuse")


@pytest.fixture(scope="module")
def run(places: Path) -> Run:
    return worked(places / "runs", fields={"dimension": 16, "epochs": 2})


@pytest.fixture(scope="module")
def refined(run: Run) -> str:
    """The name of a stored refinement."""
    return keep(run, plan_analysis(kind="refine", recipe=RECIPE), lambda _share, _step: None).id


def switches(test: AppTest) -> list[bool]:
    assert not test.exception
    return [bool(test.toggle(key=f"search-{step}").value) for step in STEPS]


def headings(test: AppTest) -> list[str]:
    return [line for line in plain(test).splitlines() if "■</span>" in line]


def plain(test: AppTest) -> str:
    """Return the texts without the signs that escape Markdown."""
    return texts(test).replace("\\", "")


@pytest.mark.usefixtures("own_places")
def test_switches_show_the_stored_recipe_and_a_switch_replaces_it(run: Run, refined: str) -> None:
    test = opened("retrieval", run=run.id, refined=refined, add="3")
    assert switches(test) == [True, True, False, False]
    assert "RPML, then whitening, then averaging with 5 neighbors" in headings(test)[-1]
    assert "transductive" not in texts(test)
    assert RECIPE not in plain(test)
    count = len(headings(test))
    test.toggle(key="search-average").set_value(False).run()
    assert switches(test) == [True, False, False, False]
    assert len(headings(test)) == count, "the changed recipe takes the place of the stored one"
    assert "**RPML, then whitening**" in headings(test)[-1]
    assert "averaging" not in "".join(headings(test))
    test.toggle(key="search-whiten").set_value(False).run()
    assert switches(test) == [False] * 4
    assert "Refined" not in "".join(headings(test))


@pytest.mark.usefixtures("own_places")
def test_a_step_that_replaces_another_one_says_so(run: Run) -> None:
    test = opened("retrieval", run=run.id, add="3", recipe="whiten+rerank")
    test.toggle(key="search-diffuse").set_value(True).run()
    assert switches(test) == [True, False, False, True]
    assert [toast.value for toast in test.toast] == ["Diffusion replaces re-ranking: a search has one of them."]
    test.toggle(key="search-average").set_value(True).run()
    assert switches(test) == [True, True, False, True]
    assert not test.toast, "a step beside the others replaces none"


@pytest.mark.usefixtures("own_places")
def test_a_switch_that_another_part_replaced_switches_nothing_on(run: Run) -> None:
    test = opened("retrieval", run=run.id, add="3")
    switch_ids = {test.toggle(key=f"search-{step}").proto.id for step in STEPS}
    stale = [state for state in test._tree.get_widget_states().widgets if state.id in switch_ids]
    assert len(stale) == len(STEPS)
    test.segmented_control(key=PART).set_value(SAME).run()
    test.run()
    states = test._tree.get_widget_states()
    states.widgets.extend(stale)  # as a browser sends them with the next click while the sidebar is drawn again
    test._run(states)
    assert not test.exception
    assert "recipe" not in test.query_params
    test.segmented_control(key=PART).set_value(SEARCH).run()
    assert switches(test) == [False] * 4


@pytest.mark.usefixtures("own_places")
def test_two_switches_that_arrive_together_both_count(run: Run) -> None:
    test = opened("retrieval", run=run.id, add="3")
    test.toggle(key="search-whiten").set_value(True)
    test.toggle(key="search-average").set_value(True).run()
    assert switches(test) == [True, True, False, False]


@pytest.mark.usefixtures("own_places")
def test_the_row_of_switches_is_called_steps_as_refine_is_the_name_of_a_view(run: Run) -> None:
    test = opened("retrieval", run=run.id, add="3")
    row = next(element for element in test.markdown if element.value == "**Steps**")
    assert row.help.startswith("Each step improves the results without labels and without training. Views: ")
    assert "**Refine**" not in texts(test)


@pytest.mark.usefixtures("own_places")
def test_the_verdict_on_the_recipe_in_view_stands_directly_below_the_results(run: Run) -> None:
    keep_opinion(run, BETTER, UNCLEAR, OF_REFINEMENTS, "whiten+average:k=10,times=2")
    test = opened("retrieval", run=run.id, recipe="whiten+average:times=2", add="3")  # the same recipe, written plainly
    captions = [caption.value.replace("\\", "") for caption in test.caption]
    verdict = ("Whitening, then averaging with 10 neighbors, twice, compared with the training alone, judged without "
               "labels: better first results, no clear difference in whole groups.")
    place = next(at for at, caption in enumerate(captions) if verdict in caption)
    assert place < next(at for at, caption in enumerate(captions) if "Click an image to search with it." in caption)
    assert verdict not in plain(opened("retrieval", run=run.id, recipe="diffuse", add="3"))


@pytest.mark.usefixtures("own_places")
def test_refine_opens_with_the_recipe_that_search_shows(run: Run, refined: str) -> None:
    first = opened("refine", run=run.id)
    assert not first.toggle(key="refine-on-average").value
    search = switched(first, "retrieval")
    assert not search.exception
    search = opened("retrieval", run=run.id, refined=refined, add="3")
    (link,) = (link.proto for link in search.get("page_link") if link.label == "Change these steps")
    assert "recipe=whiten" in link.query_string
    test = switched(search, "refine")
    assert not test.exception
    assert test.toggle(key="refine-on-whiten").value
    assert test.toggle(key="refine-on-average").value


@pytest.fixture(scope="module")
def viewed(run: Run) -> str:
    """The name of a stored refinement with views, whose features are stored."""
    return keep(run, plan_analysis(kind="refine", recipe="views:zoom=0.55+whiten"), lambda _share, _step: None).id


@pytest.mark.usefixtures("own_places")
def test_a_switch_keeps_the_views_of_a_stored_recipe_and_off_brings_back_what_was_there(run: Run, viewed: str) -> None:
    test = opened("retrieval", run=run.id, refined=viewed, add="3")
    assert switches(test) == [True, False, False, False]
    assert test.toggle(key="search-views").value
    test.toggle(key="search-average").set_value(True).run()
    assert "RPML, then several views of each image, then whitening, then averaging" in headings(test)[-1]
    test.toggle(key="search-average").set_value(False).run()
    assert test.query_params["recipe"] in ("views:zoom=0.55+whiten", ["views:zoom=0.55+whiten"])
    test.toggle(key="search-views").set_value(False).run()
    assert "**RPML, then whitening**" in headings(test)[-1]
    test.toggle(key="search-views").set_value(True).run()
    assert test.query_params["recipe"] in ("views:zoom=0.55+whiten", ["views:zoom=0.55+whiten"]), "the same crop"
    assert not test.exception


@pytest.mark.usefixtures("own_places")
def test_views_that_are_not_stored_are_left_out_with_a_way_back(run: Run, viewed: str,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages.parts.retrieval.switches.is_at_once",
                        lambda _run, recipe: bool(recipe.steps) and recipe.find("views") is None)
    test = opened("retrieval", run=run.id, refined=viewed, add="3")
    assert "search-views" not in [toggle.key for toggle in test.toggle]
    (shown,) = [element for element in test.markdown if "blue-badge" in element.value]
    assert "In use. A switch beside it turns the views off" in shown.help
    test.toggle(key="search-average").set_value(True).run()
    assert "The views are left out, because they take minutes." in texts(test)
    assert "RPML, then whitening, then averaging" in headings(test)[-1]
    test.button(key="search-back").click().run()
    assert "RPML, then several views of each image, then whitening" in headings(test)[-1]
    assert switches(test) == [True, False, False, False]


@pytest.mark.browser
@pytest.mark.slow
def test_keys_step_through_queries_after_a_switch_was_clicked(page: Page, finished: Run) -> None:
    page.goto(f"/retrieval?run={finished.id}")
    settle(page)
    page.get_by_text("Whitening", exact=True).click()
    settle(page)
    expect(page.get_by_text("RPML, then whitening").first).to_be_visible()
    query = page.locator(".st-key-retrieval-bar").get_by_text("Query:").inner_text()
    page.keyboard.press("n")
    expect(page.locator(".st-key-retrieval-bar").get_by_text("Query:")).not_to_have_text(query)


@pytest.mark.usefixtures("own_places")
def test_a_switch_searches_the_same_images_as_before(run: Run) -> None:
    test = opened("retrieval", run=run.id, add="3")
    assert plain(test).count("hits among all 1,797 images") == len(headings(test))
    test.toggle(key="search-whiten").set_value(True).run()
    assert plain(test).count("hits among all 1,797 images") == len(headings(test))
    assert "computed from 1,797 images" in plain(test)
    rows = [[tile["badge"] for tile in header["tiles"]["list"]] for header in components(test, "gallery")]
    assert ["1", "2", "3"] in [row[:3] for row in rows], "a distance beside a similarity would be compared with it"
    test = opened("retrieval", run=run.id, add="3", recipe="whiten", gallery="test")
    assert plain(test).count("hits among 359 test images") == len(headings(test)), "the recipe refines what is searched"
