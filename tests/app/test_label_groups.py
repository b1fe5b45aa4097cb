"""Groups, proposed names, assigned labels and folders on the page Label, through Streamlit's AppTest."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from pages.parts.draw.palette import percent
from pages.parts.labels.actions import MEMBERS, MOVING, OPENED, Edit
from pages.parts.labels.groups import SHOWN_OF_PART, SPLITTING
from pages.parts.shell import label_graph
from pages.parts.shell.selection import Selection
from pages.views import labels
from pages.views.labels import MOST_COLORED
from tests.app.opening import opened, texts
from tests.app.test_refine_page import tiles
from tests.cli.test_cli import answer, call
from tests.running import worked, write_digits
from udml_core.data.given import labels as given
from udml_core.data.given.exclusions import exclude, undo
from udml_core.data.given.group_changes import GroupChange, change_groups
from udml_core.data.given.log import log_path_of
from udml_core.exploration.map_content import Color
from udml_core.runs import Run
from udml_core.runs.analyses import analysis_at, plan_analysis
from udml_core.runs.search import Retrieval
from udml_core.runs.search.naming import grouping_of
from udml_core.work.workers import analyse

pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def photos(places: Path) -> Run:
    """Frozen features of 120 images without classes."""
    folder = write_digits(places / "photos", 120, by_class=False)
    return worked(places / "runs", method="frozen", dataset=str(folder), split="all")


@pytest.fixture(autouse=True)
def no_labels(photos: Run) -> None:
    log_path_of(photos.dataset(), "labels").unlink(missing_ok=True)


def sizes(test: AppTest) -> list[int]:
    return [int(tile["badge"].partition(" · ")[2].split()[0]) for tile in tiles(test, "Groups without a name")]


def number_of(test: AppTest, place: int = 0) -> str:
    """Return what the page calls the group at a place of the list, such as "Group 4"."""
    badge = tiles(test, "Groups without a name")[place]["badge"]
    return str(badge.partition(" · ")[0]).capitalize()


def show_group(photos: Run, number: int = 0, **address: str) -> AppTest:
    """Open the section Groups and one of its groups."""
    test = opened("labels", run=photos.id, section="groups", groups="8", **address)
    test.session_state[OPENED] = tiles(test, "Groups without a name")[number]["id"]
    return test.run()


def test_a_group_is_named_and_the_name_is_undone(photos: Run) -> None:
    test = show_group(photos)
    assert not test.exception
    size = sizes(test)[0]
    assert sum(sizes(test)) == 120
    assert f"**{number_of(test)}** · {size} images" in texts(test)
    first = tiles(test, "Groups without a name")[0]["id"]
    border = [tile["id"] for tile in tiles(test, "Images of the group, the border first")]
    assert border[-1] == first or size > 60, "the most typical image is the last"
    dataset = photos.dataset()
    given.assign(dataset, border, "zero")
    test.run()
    assert sum(sizes(test)) < 120
    assert f"**{len(border)} labels** · 1 class" in texts(test)
    test.button(key="labels-undo").click().run()
    assert given.assigned_labels(dataset) == {}
    assert sum(sizes(test)) == 120


def test_the_command_lists_the_groups_of_the_page_in_its_order(
        photos: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = photos.dataset()
    for _ in range(2):  # at first without names, then with a name in the first group and all of the second
        test = opened("labels", run=photos.id, section="groups")
        shown = [re.match(r"group (\d+) · (\d+)", tile["badge"]) for tile in tiles(test, "Groups without a name")]
        listed = answer(capsys, monkeypatch, "groups", str(photos.folder), "--json")
        rows = [row for row in listed["groups"] if sum(row["names"].values()) < row["images"]]
        assert [(row["group"], row["images"] - sum(row["names"].values())) for row in rows] == [
            (int(found[1]), int(found[2])) for found in shown if found]
        assert listed["count"] == len(listed["groups"])
        first, second = listed["groups"][:2]
        given.assign(dataset, list(dataset.indices_by_name({first["typical"][0]}).values()), "zero")
        grouping = grouping_of(Retrieval(photos))
        codes = grouping.tree.groups(listed["count"])
        given.assign(dataset, grouping.indices[codes == second["group"] - 1].tolist(), "one")
    code, _, err = call(capsys, monkeypatch, "groups", str(photos.folder))
    assert (code, f"{listed['count']} groups, with which Label begins too; --count forms another" in err) == (0, True)


def test_a_split_is_kept_and_undone(photos: Run) -> None:
    test = show_group(photos)
    before = sizes(test)
    test.button(key="labels-split").click().run()
    field = next(field for field in test.number_input if field.label == "Parts")
    field.set_value(3).run()
    shown = [tile["badge"] for tile in tiles(test, "Parts of the group")]
    parts = [int(badge.split(" · ")[1]) for badge in dict.fromkeys(shown)]
    assert len(shown) == sum(min(SHOWN_OF_PART, size) for size in parts), "several images of each part"
    assert (len(parts), sum(parts)) == (3, before[0])
    test.button(key="labels-keep-parts").click().run()
    assert sorted(sizes(test)) == sorted([*before[1:], *parts])
    assert SPLITTING not in test.session_state
    test.button(key="labels-undo").click().run()
    assert sizes(test) == before


def is_previewed(test: AppTest) -> bool:
    return any(button.key == "labels-keep-parts" for button in test.button)


def test_undo_and_clear_close_the_preview_of_a_split_first(photos: Run) -> None:
    test, dataset = show_group(photos), photos.dataset()
    image, number = tiles(test, "Groups without a name")[1]["id"], number_of(test)
    test.button(key="labels-split").click().run().button(key="labels-undo").click().run()
    assert not is_previewed(test), "there was nothing else to undo"
    given.assign(dataset, [image], "one")
    for key in ("labels-undo", "labels-clear"):
        test.run().button(key="labels-split").click().run()
        assert is_previewed(test)
        test.button(key=key).click().run()
        assert not is_previewed(test)
        assert f"**{number}**" in texts(test), "the group stays open"
        assert given.assigned_now(dataset) == {image: "one"}
    test.button(key="labels-undo").click().run()
    assert given.assigned_labels(dataset) == {}, "without a preview, undo reverts the action"


def test_changes_of_groups_survive_a_reload_and_are_undone_or_dropped_there(photos: Run) -> None:
    dataset, test = photos.dataset(), show_group(photos)
    before = sizes(test)
    merged = np.array(sorted({tiles(test, "Groups without a name")[number]["id"] for number in (0, 1)}))
    change_groups(dataset, GroupChange(merged, np.zeros(2, int)))
    test.button(key="labels-split").click().run().button(key="labels-keep-parts").click().run()
    changed = sizes(test)
    assert len(changed) == len(before) + 2, "two images are a group of their own, and the first group has two parts"
    reloaded = opened("labels", run=photos.id, section="groups", groups="8")
    assert sizes(reloaded) == changed
    assert reloaded.button(key="labels-drop-changes").label == "Undo 2 edits of groups"
    assert sizes(reloaded.button(key="labels-drop-changes").click().run()) == before
    assert sizes(reloaded.button(key="labels-undo").click().run()) == changed
    again = opened("labels", run=photos.id, section="groups", groups="8")
    for _ in range(2):
        again.button(key="labels-undo").click().run()
    assert sizes(again) == before
    assert again.button(key="labels-undo").disabled


def test_a_damaged_file_of_changes_is_refused_with_a_message(photos: Run) -> None:
    dataset, before = photos.dataset(), sizes(show_group(photos))
    log_path_of(dataset, "labels").parent.mkdir(parents=True, exist_ok=True)
    log_path_of(dataset, "labels").write_bytes(b'\x00\xff\n{"groups": [["a", 3]]}\n{"groups": [[], ["b"]]}\n')
    test = opened("labels", run=photos.id, section="groups", groups="8")
    assert not test.exception
    assert sizes(test) == before
    assert [warning.value for warning in test.warning] == [
        "3 lines of your stored names and changes of groups could not be read, and were ignored: the file labels.jsonl "
        "is damaged. All other lines count."]


def test_map_and_list_count_the_same_images_of_a_group(photos: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Color] = []
    monkeypatch.setattr(labels, "draw_map", lambda _dataset, _layout, color, *_, **__: drawn.append(color))
    dataset = photos.dataset()
    spec = plan_analysis(kind="pca", scope="all", frames=("final",))
    analyse.keep(photos, spec, lambda _share, _step: None)
    given.assign(dataset, [tile["id"] for tile in tiles(show_group(photos), "Images of the group, the border first")
                           ][:5], "zero")
    listed = sizes(opened("labels", run=photos.id, section="groups", groups="8"))
    shown = np.asarray(drawn[-1].values)
    assert sorted(np.bincount(shown[shown >= 0])) == sorted(listed)
    assert sum(listed) < len(dataset)
    many = tiles(opened("labels", run=photos.id, section="groups", groups="20"), "Groups without a name")
    first = [tile["badge"].split("\n")[0] for tile in many[:MOST_COLORED]]
    colored = [f"{name} · {count}" for name, count in zip(drawn[-1].names, np.bincount(
        np.asarray(drawn[-1].values) + 1)[1:], strict=True)]
    assert colored == first, "the next to name"
    test = show_group(photos, 1)
    shown, chosen = np.asarray(drawn[-1].values), test.session_state[OPENED]
    assert drawn[-1].none == "other images"
    assert len(np.unique(shown[shown >= 0])) == 1, "the other groups are gray"
    assert (shown >= 0).sum() == listed[1]
    assert shown[chosen] >= 0


def test_groups_stand_in_the_order_of_their_words_and_of_their_sizes(photos: Run) -> None:
    badges = [tile["badge"] for tile in tiles(opened("labels", run=photos.id, section="groups", groups="50"),
                                              "Groups without a name")]
    order = ["", "similar", "mixed", "1"]
    words = [(badge.partition("\n")[2], int(badge.partition(" · ")[2].split()[0])) for badge in badges]
    ranks = [(order.index("1" if size == 1 else word), -size) for word, size in words]
    assert ranks == sorted(ranks)
    assert len({rank for rank, _ in ranks}) > 1


def test_merged_groups_show_on_the_map_until_undone(photos: Run) -> None:
    test = show_group(photos)
    before, dataset = sizes(test), photos.dataset()
    border = [tile["id"] for tile in tiles(test, "Images of the group, the border first")]
    images = np.array(sorted({*border, tiles(test, "Groups without a name")[1]["id"]}))
    change_groups(dataset, GroupChange(images, np.zeros(len(images), int)))
    test.session_state["labels-trails"] = {dataset.fingerprint: [Edit(images.tolist(), (OPENED, border[-1]), border)]}
    test.run()
    assert not test.exception
    assert len(images) in sizes(test)
    assert sum(sizes(test)) == sum(before)
    test.session_state["selection"] = Selection(dataset.fingerprint, images, 99)
    test.run().button(key="labels-undo").click().run()
    assert sizes(test) == before
    assert test.session_state["selection"].ids.tolist() == sorted(border), "what was selected before"
    assert test.session_state[OPENED] == border[-1]


def test_a_merge_offers_the_other_groups_by_their_distance_until_it_is_canceled(photos: Run) -> None:
    test = show_group(photos)
    dataset, groups = photos.dataset(), tiles(test, "Groups without a name")
    border = [tile["id"] for tile in tiles(test, "Images of the group, the border first")]
    test.session_state["selection"] = Selection(dataset.fingerprint, np.sort(border), 99)
    test.run()
    test.button(key="labels-move").click().run()
    assert f"takes in {len(border)} images" in texts(test)
    offered = [tile["id"] for tile in tiles(test, "Groups without a name")]
    points = photos.embeddings("final")
    tree = grouping_of(Retrieval(photos)).tree.groups(8)
    center = points[border].mean(axis=0)
    gaps = {image: float(np.linalg.norm(points[tree == tree[image]].mean(axis=0) - center)) for image in offered}
    assert set(offered) == {tile["id"] for tile in groups[1:]}
    assert offered == sorted(offered, key=gaps.__getitem__)
    test.button(key="labels-stay").click().run()
    assert MOVING not in test.session_state
    assert tiles(test, "Groups without a name") == groups


def test_wrong_labels_are_shown_beside_their_nearest(photos: Run) -> None:
    dataset, points = photos.dataset(), photos.embeddings("final")
    tree = grouping_of(Retrieval(photos)).tree.groups(2)
    for group, name in enumerate("ab"):
        given.assign(dataset, np.flatnonzero(tree == group).tolist(), name)
    wrong = int(np.flatnonzero(tree == 0)[0])
    given.assign(dataset, [wrong], "b")
    nearest = int(np.argsort(np.linalg.norm(points - points[wrong], axis=1))[1])
    assert tree[nearest] == 0
    test = opened("labels", run=photos.id, section="labels")
    assert "R@1" in texts(test)
    shown = [tile["caption"] for tile in tiles(test, "Labels to check")]
    assert " and ".join(map(dataset.caption, sorted([wrong, nearest]))) in shown
    assert f"Most often: *a* and *b* {len(shown):,} ×" in texts(test)


def test_proposed_names_are_confirmed_and_rejected(photos: Run) -> None:
    test = show_group(photos)
    border = [tile["id"] for tile in tiles(test, "Images of the group, the border first")]
    dataset = photos.dataset()
    given.assign(dataset, border[-6:], "zero")
    test = opened("labels", run=photos.id, section="proposals")
    assert "may show *zero*, the most certain first. Too few names of zero are checked yet" in texts(test)
    assert "these are guesses" in texts(test)
    proposed = [tile["id"] for tile in tiles(test, "Images that look like zero")]
    assert proposed
    answer_button(test, "labels-confirm").click().run()
    assert not test.exception
    labels = given.labels_by_index(dataset, given.assigned_labels(dataset))
    assert set(proposed) < set(labels)
    assert [name.is_right for name in given.judged_names(dataset)] == [True] * len(proposed)
    test.button(key="labels-undo").click().run()
    assert len(given.assigned_labels(dataset)) == 6


def answer_button(test: AppTest, key: str) -> Any:
    """Return a button that answers about a page of proposed names; each page has keys of its own."""
    return next(button for button in test.button if (button.key or "").startswith(f"{key}-"))


ANSWERS = ("labels-confirm", "labels-only", "labels-none")


def asked_about(photos: Run, name: str = "zero", count: int = 6) -> AppTest:
    """Name images of the first group, and open the proposed names."""
    images = [tile["id"] for tile in tiles(show_group(photos), "Images of the group, the border first")]
    given.assign(photos.dataset(), images[-count:], name)
    return opened("labels", run=photos.id, section="proposals")


def shown(test: AppTest, name: str = "zero") -> list[int]:
    return [tile["id"] for tile in tiles(test, f"Images that look like {name}")]


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("reloads", [False, True])
def test_undo_shows_proposed_names_as_they_were_before_the_answer(photos: Run, answer: str, reloads: bool) -> None:
    test, dataset = asked_about(photos), photos.dataset()
    images = shown(test)
    if not reloads:  # another session does not know what was selected beside
        test.session_state["selection"] = Selection(dataset.fingerprint, np.sort(images[:2]), 7)
        test.run()
    before = [answer_button(test, key).label for key in ANSWERS]
    answer_button(test, "labels-none" if reloads and answer == "labels-only" else answer).click().run()
    assert {name.image for name in given.judged_names(dataset)} == {dataset.names[image] for image in images}
    test = opened("labels", run=photos.id, section="proposals") if reloads else test
    test.button(key="labels-undo").click().run()
    assert [answer_button(test, key).label for key in ANSWERS] == before
    assert shown(test) == images
    assert not given.judged_names(dataset)


@pytest.mark.parametrize(("answer", "right"), [("labels-confirm", slice(2, None)), ("labels-only", slice(0, 2)),
                                               ("labels-none", slice(0, 0))])
def test_one_answer_names_some_images_of_a_page_and_rejects_the_others(photos: Run, answer: str, right: slice) -> None:
    test, dataset = asked_about(photos), photos.dataset()
    images = shown(test)
    assert 10 <= len(images) <= 20
    test.session_state["selection"] = Selection(dataset.fingerprint, np.sort(images[:2]), 7)
    test.run()
    assert (answer_button(test, "labels-confirm").label, answer_button(test, "labels-only").label) == (
        f"{len(images) - 2} yes, 2 no", f"2 yes, {len(images) - 2} no")
    keys = [button.key for button in test.button]
    answer_button(test, answer).click().run()
    assert not test.exception
    judged = {name.image: name.is_right for name in given.judged_names(dataset)}
    assert judged == {dataset.names[image]: image in images[right] for image in images}
    assert given.assigned_labels(dataset).keys() >= {dataset.names[image] for image in images[right]}
    assert test.session_state["selection"].ids.tolist() == []
    assert not set(shown(test)) & set(images), "then others come"
    assert answer_button(test, answer).key not in keys, "a second press does not answer about them"


def test_a_page_keeps_its_images_and_order_until_it_is_answered(photos: Run) -> None:
    test, dataset = asked_about(photos), photos.dataset()
    images = shown(test)
    given.assign(dataset, images[1:3], "one")
    groups = np.flatnonzero(~np.isin(np.arange(len(dataset)), images))
    given.assign(dataset, groups[:20].tolist(), "zero")
    test.run()
    assert shown(test) == images, "an image that got another name stays where it was"
    assert [tile["badge"] for tile in tiles(test, "Images that look like zero")][1:3] == ["one", "one"]
    answer_button(test, "labels-confirm").click().run()
    assert len(given.judged_names(dataset)) == len(images) - 2, "it is not asked about"
    assert given.assigned_now(dataset)[images[1]] == "one"


def test_the_next_class_follows_an_answer_and_a_class_without_a_yes_comes_last(photos: Run) -> None:
    dataset, groups = photos.dataset(), grouping_of(Retrieval(photos)).tree.groups(8)
    for number, name in enumerate(("zero", "one", "two")):
        given.assign(dataset, np.flatnonzero(groups == number)[:4].tolist(), name)
    test = opened("labels", run=photos.id, section="proposals")
    order = test.selectbox(key="labels-proposed").options
    assert sorted(order) == ["one", "two", "zero"]
    given.reject(dataset, shown(test, order[0])[-1:], order[0])
    assert opened("labels", run=photos.id, section="proposals").selectbox(key="labels-proposed").options[-1] == order[0]
    given.undo(dataset)
    answer_button(test, "labels-none").click().run()
    after, second = test.selectbox(key="labels-proposed").options, test.selectbox(key="labels-proposed").value
    assert (after[-1], after[0]) == (order[0], second)
    answer_button(test, "labels-none").click().run()
    assert test.selectbox(key="labels-proposed").options[1:] == [order[0], second], "in the order of the answers"
    test.button(key="labels-undo").click().run().button(key="labels-undo").click().run()
    assert test.selectbox(key="labels-proposed").options == order
    assert test.selectbox(key="labels-proposed").value == order[0]


def test_the_next_group_opens_after_a_name_and_undo_returns(photos: Run) -> None:
    test, dataset = show_group(photos), photos.dataset()
    order = [tile["id"] for tile in tiles(test, "Groups without a name")]
    first = [tile["id"] for tile in tiles(test, "Images of the group, the border first")]
    test.session_state["selection"] = Selection(dataset.fingerprint, np.sort(first), 7)
    test.run().text_input(key="labels-typed").set_value("zero")
    test.button(key=f"FormSubmitter:labels-form-Name {len(first)} images").click().run()
    assert test.session_state[OPENED] == order[1]
    following = [tile["id"] for tile in tiles(test, "Images of the group, the border first")]
    assert test.session_state["selection"].ids.tolist() == sorted(following), "it can be named at once"
    assert f"{len(first)} images named zero." in texts(test)
    test.button(key="labels-undo").click().run()
    assert test.session_state[OPENED] == order[0]
    assert test.session_state["selection"].ids.tolist() == sorted(first)
    assert [tile["id"] for tile in tiles(test, "Groups without a name")] == order
    test.button(key="labels-skip-group").click().run()
    assert test.session_state[OPENED] == order[1]
    third = [tile["id"] for tile in tiles(test, "Images of the group, the border first")]
    test.session_state["selection"] = Selection(dataset.fingerprint, np.sort(third), 8)
    test.run().text_input(key="labels-typed").set_value("one")
    test.button(key=f"FormSubmitter:labels-form-Name {len(third)} images").click().run()
    assert test.session_state[OPENED] == order[2], "not the group that was passed over"
    for _ in order[2:]:
        test.button(key="labels-skip-group").click().run()
    assert test.session_state[OPENED] == order[0], "it comes again after the last"


def test_undo_opens_the_proposed_names_of_the_class_that_was_confirmed(photos: Run) -> None:
    test, dataset = show_group(photos), photos.dataset()
    for number, name in enumerate(("zero", "one")):
        images = [tile["id"] for tile in tiles(show_group(photos, number), "Images of the group, the border first")]
        given.assign(dataset, images[-3:], name)
    test = opened("labels", run=photos.id, section="proposals")
    second = test.selectbox(key="labels-proposed").options[1]
    test.selectbox(key="labels-proposed").set_value(second).run()
    answer_button(test, "labels-confirm").click().run().button(key="labels-undo").click().run()
    assert test.selectbox(key="labels-proposed").value == second


def test_many_images_are_grouped_in_the_background_before_anything_is_searched(
        photos: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_graph, "MOST_AT_ONCE", 10)
    monkeypatch.setattr(label_graph.views, "neighbor_rows", lambda *_: pytest.fail("searched in the page"))
    st.cache_resource.clear()
    test = opened("labels", run=photos.id)
    assert not test.exception
    assert test.button(key="labels-groups-new").label == "Form groups"
    spec = plan_analysis(kind="groups", scope="all", frames=("final",))
    analyse.keep(photos, spec, lambda _share, _step: None)
    try:
        assert sum(sizes(opened("labels", run=photos.id))) == len(photos.dataset())
    finally:
        shutil.rmtree(analysis_at(photos, spec).folder)
        st.cache_resource.clear()


def test_images_excluded_after_the_run_are_in_no_group_and_get_no_name(photos: Run) -> None:
    dataset, test = photos.dataset(), show_group(photos)
    images = [tile["id"] for tile in tiles(test, "Images of the group, the border first")]
    given.assign(dataset, images[-6:], "zero")
    proposed = tiles(opened("labels", run=photos.id, section="proposals"), "Images that look like zero")[-1]["id"]
    exclude(dataset, [proposed, images[0]])
    try:
        test = opened("labels", run=photos.id, section="proposals")
        assert proposed not in [tile["id"] for tile in tiles(test, "Images that look like zero")]
        assert sum(sizes(opened("labels", run=photos.id))) == len(dataset) - 6 - 2
    finally:
        undo(dataset)


def test_no_name_is_accepted_before_it_is_known_how_many_are_right(photos: Run) -> None:
    dataset, test = photos.dataset(), show_group(photos)
    given.assign(dataset, [tile["id"] for tile in tiles(test, "Images of the group, the border first")][-6:], "zero")
    test = opened("labels", run=photos.id, section="proposals")
    assert "these are guesses" in texts(test)
    assert tiles(test, "Images that look like zero")
    assert f"{percent(100 * 6 / len(dataset))} of the images named" in texts(test)


def test_folders_are_planned_and_written(photos: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = opened("labels", run=photos.id, section="folders")
    assert "There are no labels yet, so all images" in texts(test)
    test.text_input(key="labels-target").input(str(tmp_path / "kept"))
    next(button for button in test.button if button.label == "Show plan").click().run()
    assert "in 1 folder below" in texts(test)
    dataset = photos.dataset()
    given.assign(dataset, range(30), "a/b")
    test = opened("labels", run=photos.id, section="folders")
    plan = next(button for button in test.button if button.label == "Show plan")
    plan.click().run()
    assert "needs a folder to write to" in texts(test)
    test.text_input(key="labels-target").input(str(tmp_path / "sorted"))
    next(button for button in test.button if button.label == "Show plan").click().run()
    assert "**Plan.**" in texts(test)
    assert not (tmp_path / "sorted").exists(), "a plan writes nothing"
    monkeypatch.setattr("streamlit.rerun", lambda **_scope: None)  # AppTest runs the whole page, not its fragment
    given.assign(dataset, [40], "c")
    assert "have changed since the plan" in texts(test.run())
    assert not any(button.key == "labels-write" for button in test.button), "an old plan cannot be written"
    test.checkbox(key="labels-programs").uncheck()
    next(button for button in test.button if button.label == "Show plan").click().run()
    assert "Beside the folders: metadata.csv and images.parquet." in texts(test)
    test.button(key="labels-write").click().run()
    assert not test.exception
    assert len(list((tmp_path / "sorted").glob("a*/*.png"))) >= 30
    assert not (tmp_path / "sorted" / "fiftyone").exists()
    assert "written to" in texts(test.run())
    given.undo(dataset)
    assert "written to" not in texts(test.run()), "the message goes when the names change"
    given.assign(dataset, [41, 42], "c")
    test = opened("labels", run=photos.id, section="folders")
    assert test.text_input(key="labels-target").value == str(tmp_path / "sorted"), "the folder of the last export"
    next(button for button in test.button if button.label == "Show plan").click().run()
    assert test.button(key="labels-write").label == "Write 2 new images (30 are there already)"
    assert "Copies of 2 new images (30 are there already) in" in texts(test)
    assert "1 file in c/ has no name and is left out now. They stay" in texts(test)
    test.checkbox(key="labels-prune").check()
    next(button for button in test.button if button.label == "Show plan").click().run()
    former = next((tmp_path / "sorted" / "c").iterdir())
    assert f"c/{former.name}" in str([frame.value.to_dict() for frame in test.dataframe])
    assert test.button(key="labels-write").disabled, "the list needs a yes"
    assert test.button(key="labels-write").label == "Write 2 new images (30 are there already), remove 1 file"
    next(box for box in test.checkbox if box.label == "I have read the list: remove 1 file").check().run()
    test.button(key="labels-write").click().run()
    assert not former.exists()
    assert "1 file of earlier exports removed." in texts(test.run())
    assert len(list((tmp_path / "sorted" / "c").iterdir())) == 2


def select_group(photos: Run) -> AppTest:
    """Open a group with its images selected, as a click does."""
    test = show_group(photos)
    images = grouping_of(Retrieval(photos)).tree.groups(8)
    test.session_state["selection"] = Selection(photos.dataset().fingerprint, np.flatnonzero(
        images == images[test.session_state[OPENED]]), 1)
    return test.run()


def selected(test: AppTest) -> int:
    return len(test.session_state["selection"].ids)


def test_another_section_drops_the_selection_so_that_no_unseen_image_is_named(photos: Run) -> None:
    test = select_group(photos)
    count = selected(test)
    assert count > 1
    assert f"{count} images selected" in texts(test)
    test.session_state["labels-section"] = "Proposed names"
    test.run()
    assert not test.exception
    assert selected(test) == 0
    assert OPENED not in test.session_state
    assert "**Open a group**" in texts(test)
    test.session_state["labels-section"] = "Groups"
    test.run()
    assert "Images of the group, the border first" not in str([element.proto for element in test.main])


def test_images_that_undo_selects_again_are_shown_in_every_section(photos: Run) -> None:
    test = select_group(photos)
    count = selected(test)
    test.text_input(key="labels-typed").set_value("zero")
    test.button(key="FormSubmitter:labels-form-Name " + f"{count} images").click().run()
    assert len(given.assigned_labels(photos.dataset())) == count
    test.session_state["labels-section"] = "Labels"
    test.run()
    test.button(key="labels-undo").click().run()
    assert not test.exception
    assert selected(test) == count
    assert len(tiles(test, "Selected images")) == count


def test_what_is_left_of_a_group_and_single_images_come_last(photos: Run) -> None:
    dataset, test = photos.dataset(), show_group(photos)
    order = [tile["id"] for tile in tiles(test, "Groups without a name")]
    groups = grouping_of(Retrieval(photos)).tree.groups(8)
    given.assign(dataset, np.setdiff1d(np.flatnonzero(groups == groups[order[0]]), order[0])[:2].tolist(), "zero")
    single = int(np.setdiff1d(np.flatnonzero(groups == groups[order[1]]), order[1])[0])
    change_groups(dataset, GroupChange(np.array([order[1], single]), np.array([0, 1])))
    listed = [tile["id"] for tile in tiles(opened("labels", run=photos.id, section="groups", groups="8"),
                                           "Groups without a name")]
    assert set(listed[-3:]) == {order[0], order[1], single}, "each of two images that were taken out is alone"
    assert set(order[2:]) <= set(listed[:-3])


def test_clear_selects_nothing_and_closes_the_group(photos: Run) -> None:
    test = select_group(photos)
    assert test.button(key="labels-clear").proto.shortcut == "escape"
    test.button(key="labels-clear").click().run()
    assert selected(test) == 0
    assert OPENED not in test.session_state
    assert not [button for button in test.button if button.key == "labels-clear"]


def test_a_lower_certainty_still_says_that_names_are_guesses(photos: Run) -> None:
    dataset, images = photos.dataset(), grouping_of(Retrieval(photos)).tree.groups(8)
    given.assign(dataset, np.flatnonzero(images == 0)[:3].tolist(), "zero")
    test = opened("labels", run=photos.id, section="proposals")
    assert "these are guesses" in texts(test)
    test.session_state["labels-least-moved"] = True
    test.slider(key="labels-least").set_value(30).run()
    assert not test.exception
    assert "these are guesses" in texts(test)


def test_a_class_that_images_look_unlike_is_given_only_after_a_question(photos: Run) -> None:
    dataset, groups = photos.dataset(), grouping_of(Retrieval(photos)).tree.groups(8)
    for number, name in ((0, "zero"), (1, "one")):
        given.assign(dataset, np.flatnonzero(groups == number)[:-3].tolist(), name)

    def select_three(number: int) -> AppTest:
        test = opened("labels", run=photos.id, section="groups", groups="8")
        test.session_state["selection"] = Selection(dataset.fingerprint, np.flatnonzero(groups == number)[-3:], 1)
        return test.run()

    test, before = select_three(5), given.assigned_labels(dataset)
    test.button(key="labels-class-2").click().run()
    question = "These 3 images look unlike *one*"
    assert any(question in each.value for each in test.markdown)
    assert given.assigned_labels(dataset) == before, "one click names nothing"
    test.button(key="labels-not-named").click().run()
    assert not any(question in each.value for each in test.markdown)
    assert selected(test) == 3, "Cancel keeps the selection"
    test.text_input(key="labels-typed").set_value("ONE")
    test.button(key="FormSubmitter:labels-form-Name 3 images").click().run()
    assert given.assigned_labels(dataset) == before, "a typed class asks too"
    test.button(key="labels-nevertheless").click().run()
    assert not test.exception
    assert len(given.assigned_labels(dataset)) == len(before) + 3
    assert "3 images named one." in texts(test)
    test = select_three(1)
    test.button(key="labels-class-2").click().run()
    assert len(given.assigned_labels(dataset)) == len(before) + 6, "images that look like the class get it at once"
    given.assign(dataset, np.flatnonzero(groups == 1)[:1].tolist(), "zero")  # no image of group 1 is one
    test = opened("labels", run=photos.id, section="groups", groups="8")
    assert re.search(r"named \*zero\* may be something else:\*\* [\w ]+ looks? more like \*one\*", texts(test))
    test.button(key="labels-doubts").click().run()
    assert np.flatnonzero(groups == 1)[0] in test.session_state["selection"].ids
    test.button(key="labels-clear").click().run()
    assert "may be something else" in texts(test), "doubts stay until they are answered"


def test_names_that_are_right_are_no_doubts_until_that_is_undone(photos: Run) -> None:
    dataset, groups = photos.dataset(), grouping_of(Retrieval(photos)).tree.groups(8)
    for number, name in ((2, "two"), (3, "three")):
        given.assign(dataset, np.flatnonzero(groups == number).tolist(), name)
    wrong = {"two": np.flatnonzero(groups == 3)[:1].tolist(), "three": np.flatnonzero(groups == 2)[:2].tolist()}
    for name, images in wrong.items():
        given.assign(dataset, images, name)

    def doubted(test: AppTest) -> str:
        return found[1] if (found := re.search(r"named \*(\w+)\* may be something else", texts(test))) else ""

    test = opened("labels", run=photos.id, section="groups", groups="8")
    first = doubted(test)
    assert "1 other class to check, too" in texts(test)
    test.button(key="labels-doubts").click().run()
    images = test.session_state["selection"].ids.tolist()
    assert set(wrong[first]) <= set(images)
    assert doubted(test) == first, "the line stays while the images are looked at"
    test.button(key="labels-clear").click().run()
    second, = {"two", "three"} - {first}
    assert doubted(test) == second, "then the other class comes first"
    test.button(key="labels-doubts").click().run().button(key="labels-clear").click().run()
    test.button(key="labels-doubts").click().run()
    assert test.session_state["selection"].ids.tolist() == images
    test.button(key="labels-right").click().run()
    assert not test.exception
    assert given.sure_images(dataset) == {dataset.names[image] for image in images}
    assert doubted(test) == second
    assert "other class" not in texts(test)
    assert first != doubted(opened("labels", run=photos.id, section="groups", groups="8")), "also later"
    test.button(key="labels-undo").click().run()
    assert not given.sure_images(dataset)
    assert test.session_state["selection"].ids.tolist() == images
    given.assign(dataset, images, first, is_sure=True)
    given.assign(dataset, images[:1], second)
    assert given.sure_images(dataset) == {dataset.names[image] for image in images[1:]}, "another name may be doubted"


def test_a_group_stays_open_and_selected_if_its_name_is_refused(photos: Run) -> None:
    test, dataset = show_group(photos), photos.dataset()
    first = sorted(tile["id"] for tile in tiles(test, "Images of the group, the border first"))
    test.session_state["selection"] = Selection(dataset.fingerprint, np.array(first), 7)
    opens = test.session_state[OPENED]
    test.run().button(key=f"FormSubmitter:labels-form-Name {len(first)} images").click().run()
    assert not test.exception
    assert test.session_state[OPENED] == opens, "a name that follows is for the images in view"
    assert test.session_state["selection"].ids.tolist() == first
    assert not given.assigned_labels(dataset)


def test_guesses_are_offered_for_a_look_after_the_next_group(photos: Run) -> None:
    dataset, groups = photos.dataset(), grouping_of(Retrieval(photos)).tree.groups(8)
    given.assign(dataset, np.flatnonzero(groups == 0)[:6].tolist(), "zero")
    test = opened("labels", run=photos.id, section="groups", groups="8")
    assert "nearest to *zero* (" in texts(test)
    assert "Confirm" not in texts(test)
    test.button(key="labels-guesses").click().run()
    button = answer_button(test, "labels-confirm")
    assert (button.label[:4], button.proto.type) == ("All ", "secondary")
    test.button(key="labels-next-group").click().run()
    assert not test.exception
    assert OPENED in test.session_state
    assert selected(test) > 1, "the next group is open, and its images are selected"
    assert tiles(test, "Images of the group, the border first")


@pytest.mark.parametrize("separates", [False, True])
def test_an_image_that_was_taken_out_of_a_group_is_not_offered_for_its_name(photos: Run, separates: bool) -> None:
    test, dataset = show_group(photos), photos.dataset()
    images = [tile["id"] for tile in tiles(test, "Images of the group, the border first")]
    out, kept = images[0], images[1:]
    test.session_state[MEMBERS] = images  # as a click on the group leaves it
    test.session_state["selection"] = Selection(dataset.fingerprint, np.sort(kept), 7)
    test.run()
    if separates:
        test.button(key="labels-separate").click().run()
    test.text_input(key="labels-typed").set_value("zero")
    test.button(key=f"FormSubmitter:labels-form-Name {len(kept)} images").click().run()
    assert given.rejected_classes(dataset) == {dataset.names[out]: {"zero"}}
    proposed = opened("labels", run=photos.id, section="proposals")
    assert out not in shown(proposed)
    assert shown(proposed), "others are"
    test.button(key="labels-undo").click().run()
    assert given.rejected_classes(dataset) == {}, "one undo takes both back"
    assert test.session_state["selection"].ids.tolist() == sorted(kept)
