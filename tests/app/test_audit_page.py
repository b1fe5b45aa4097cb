"""The audit on the page Data through Streamlit's AppTest: findings, excluding, undo, and files of names."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from PIL import Image
from sklearn.datasets import load_sample_image
from streamlit.testing.v1 import AppTest

from pages.parts.data import computed, duplicates, excluding
from pages.parts.data.audited import FINDINGS, load_facts
from pages.parts.data.copies import Copies, poor_words
from pages.parts.shell.run_status import escaped
from pages.parts.shell.selection import Selection
from tests.app.opening import offer, opened, texts
from tests.running import spec
from udml_core.base.paths import dataset_cache
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.given.duplicate_decisions import decisions_of, prefer
from udml_core.data.given.exclusions import exclude, excluded_images, excluded_names
from udml_core.data.image_facts import facts_of, stored_facts
from udml_core.data.image_hashes import FILE as HASHES
from udml_core.exploration.quality import CHECKS, poor_images, quality_scores
from udml_core.runs import create_run, list_runs, runs_folder
from udml_core.runs.analyses import create_analysis, plan_analysis
from udml_core.work.jobs import auditing as auditing_jobs
from udml_core.work.jobs.auditing import audit_import, find_auditing, start_auditing
from udml_core.work.jobs.follow_ups import next_map, wants
from udml_core.work.workers import analyse as analysis_worker
from udml_core.work.workers import train as worker


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes of eight parts of photographs; copies in both classes, a scaled copy, and a broken file."""
    folder = tmp_path_factory.mktemp("audited") / "photos"
    for number in range(16):
        image = Image.fromarray(load_sample_image(("china.jpg", "flower.jpg")[number // 8]))
        part = image.crop((80 * (number % 8), 60, 80 * (number % 8) + 80, 140)).resize((16, 16))
        path = folder / ("china" if number < 8 else "flower") / f"{number:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        part.save(path)
    Image.open(folder / "china" / "01.png").save(folder / "flower" / "copy.bmp")
    Image.open(folder / "flower" / "09.png").resize((12, 12)).save(folder / "flower" / "scaled.png")
    (folder / "flower" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    return folder


@pytest.fixture(scope="module")
def prepared(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache, and a folder of runs with the frozen features and the audit."""
    root = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UDML_CACHE", str(root / "cache"))
        run = create_run(spec("frozen", str(photos), "all"), root / "runs")
        assert worker.work(run, analyse=False).state == "done"
        analysis_worker.keep(run, plan_analysis(kind="audit"), lambda _share, _step: None)
    return root


@pytest.fixture
def dataset(photos: Path, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    shutil.copytree(prepared / "cache", tmp_path / "cache")
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    catalog.remember(str(photos))
    monkeypatch.setattr(computed, "DEFAULT_BACKBONE", "pixels")
    return catalog.load(str(photos))


@pytest.fixture
def audited(prepared: Path) -> None:
    """A finished run of the frozen features, and the audit."""
    shutil.copytree(prepared / "runs", runs_folder())


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict[int, str]]:
    """The badges of each gallery that the page draws, by image."""
    galleries: list[dict[int, str]] = []

    def draw(_dataset: Any, tiles: list[Any], *_: Any, **__: Any) -> None:
        galleries.append({tile.id: tile.badge for tile in tiles})

    monkeypatch.setattr(excluding, "selectable_gallery", draw)
    monkeypatch.setattr(duplicates, "gallery", draw)
    return galleries


def index(dataset: Dataset, name: str) -> int:
    return dataset.names.index(name)


def audit_page(dataset: Dataset, **query: str) -> AppTest:
    test = opened("data", dataset=dataset.name, view="audit", **query)
    assert not test.exception
    return test


def progress_words(test: AppTest) -> str:
    return "".join(bar.proto.text for bar in test.get("progress"))


def labels(test: AppTest) -> list[str]:
    return [button.label for button in test.button]


def test_the_audit_is_offered_and_follows_the_features_and_an_audit_that_failed_follows_the_run(
        dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda *_: None)
    (dataset_cache(dataset.fingerprint) / HASHES).unlink(missing_ok=True)
    st.cache_resource.clear()
    test = audit_page(dataset)
    assert "no file is changed" in texts(test)
    assert "in progress" not in texts(test)
    next(button for button in test.button if button.label == "Audit these images").click().run()
    assert not test.exception
    (run,) = list_runs(runs_folder())
    assert run.spec().method == "frozen"
    assert "Copies, quality and broken files appear here first" in texts(test)
    assert "Their audit follows." in texts(test)
    assert "Step 3 of 5, comparing all images" in progress_words(test)
    with monkeypatch.context() as broken:
        broken.setattr("udml_core.exploration.audit.audit_of", lambda *_: 1 / 0)
        assert worker.work(run, analyse=False).state == "done", "a failed audit fails no run"
    test.run()
    assert "First findings." in texts(test), "the worker's end starts the comparison, not the page"
    finding = next(group for group in test.button_group if group.key == "audit-finding")
    assert finding.options[0] == "Exact copies (1)"
    assert not [option for option in finding.options if "Outliers" in option], "outliers need features"
    assert next_map(runs_folder()) == (run, plan_analysis(kind="audit"))
    analysis = create_analysis(run, plan_analysis(kind="audit"))
    test.run()
    assert "Comparing all images" in progress_words(test)
    assert "equal content" in texts(test), "the first findings stay until all images are compared"
    assert "First findings." not in texts(test)
    analysis_worker.work(analysis)
    test.run()
    assert "equal content" in texts(test)
    assert next_map(runs_folder()) is None
    encoder = run.spec().encoder
    assert find_auditing(dataset, encoder, runs_folder()).finished == analysis
    assert start_auditing(dataset, encoder, runs_folder()).task is None


@pytest.mark.parametrize("switch", ["0", "1"])
def test_an_import_starts_the_audit_unless_work_without_a_request_is_off(
        switch: str, photos: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_MAPS", switch)
    monkeypatch.setattr(auditing_jobs, "DEFAULT_BACKBONE", "pixels")
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda *_: None)
    test = opened("data", **{"import": "1"})
    test.text_input(key="import-path").set_value(str(photos)).run()
    next(button for button in test.button if button.label == "Open").click().run()
    assert not test.exception
    assert [wants(run, "audit") for run in list_runs(runs_folder())] == [True] * int(switch)
    assert ("Their audit follows." in texts(test)) == (switch == "1")
    audit_import(dataset, runs_folder())
    assert len(list_runs(runs_folder())) == int(switch), "an audit is started once"


def test_a_race_is_offered_with_the_copies_that_take_part_and_leads_to_them(dataset: Dataset, audited: None) -> None:
    test = opened("data", dataset=dataset.name, view="advice")
    assert "The audit found 1 copy that takes part" in texts(test)
    assert test.button(key="advice-decide").label == "Decide on the copies first"
    assert test.button(key="audit-show").proto.type == "secondary", "the race comes first here"
    test.button(key="advice-decide").click().run()
    assert not test.exception
    assert test.query_params["view"] == "audit"
    exclude(dataset, [index(dataset, "flower/copy.bmp")])
    assert "Decide on" not in " ".join(labels(opened("data", dataset=dataset.name, view="advice")))


def test_the_button_of_copies_opens_what_can_be_decided_first() -> None:
    both, near = Copies(20, 66), Copies(0, 46)
    assert (both.finding, both.parts) == ("exact", ", 20 of equal content and 46 near-duplicates")
    assert (near.finding, near.parts) == ("near", "")


def test_copies_that_are_near_duplicates_open_as_such(dataset: Dataset, audited: None,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages.parts.data.copies.copies_of", lambda *_: Copies(0, 2))
    test = opened("data", dataset=dataset.name, view="advice")
    test.button(key="advice-decide").click().run()
    assert not test.exception
    assert test.segmented_control(key="audit-finding").value == "near"


def test_the_audit_has_one_link_to_the_search(dataset: Dataset, audited: None) -> None:
    analysis_worker.keep(list_runs(runs_folder())[0], plan_analysis(kind="pca", frames=("final",)), lambda *_: None)

    def links(view: str) -> list[str]:
        return [link.proto.label for link in opened("data", dataset=dataset.name, view=view).get("page_link")]

    assert "Search" in links("gallery")
    assert {"Map", "Search these images"} <= set(links("audit"))
    assert "Search" not in links("audit")


def test_poor_images_that_take_part_in_races_and_judgments_are_counted_and_can_be_excluded(
        dataset: Dataset, audited: None) -> None:
    facts = load_facts(dataset)
    assert facts is not None
    poor = np.unique(np.concatenate([poor_images(facts, np.ones(len(dataset), bool), check) for check in CHECKS]))
    assert len(poor) > 1
    test = opened("data", dataset=dataset.name, view="advice")
    assert f"{len(poor)} images that the audit lists under Quality" in texts(test)
    assert "finding=quality" in next(link.proto.query_string for link in test.get("page_link")
                                     if link.proto.label == "Look at them")
    exclude(dataset, poor[1:])
    assert poor_words(dataset).startswith("1 image that the audit lists under Quality")
    assert poor_words(dataset).endswith(" takes part.")
    exclude(dataset, poor)
    assert "lists under Quality" not in texts(opened("data", dataset=dataset.name, view="advice"))


def test_a_race_that_is_offered_during_the_audit_says_to_begin_after_it(
        dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda *_: None)
    said = "First, the audit looks for copies"
    test = opened("data", dataset=dataset.name, view="advice")
    assert said not in texts(test)
    assert test.button(key="advice-start").label == "Find the best search"
    assert start_auditing(dataset, computed.chosen_encoder(dataset), runs_folder()).task is not None
    test = opened("data", dataset=dataset.name, view="advice")
    assert not test.exception
    assert said in texts(test)
    (bar,) = test.get("progress")
    assert re.match(r"Step \d of 5, ", bar.proto.text), "with its steps and, once known, the time left"
    assert "you decide about the copies, and begin." in bar.proto.text
    assert test.button(key="advice-start").label == "Begin without waiting"


@pytest.mark.usefixtures("audited")
@pytest.mark.parametrize(("is_found", "main"), [(False, "audit-show"), (True, "advice-open")])
def test_once_a_best_search_is_found_it_comes_before_the_findings(
        is_found: bool, main: str, dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("advising", "auditing"):
        monkeypatch.setattr(f"pages.parts.data.{place}.has_race", lambda _: is_found)
    test = opened("data", dataset=dataset.name)
    assert [key for key in ("audit-show", "advice-open") if test.button(key=key).proto.type == "primary"] == [main]


def test_a_line_counts_the_findings_and_leads_to_them(dataset: Dataset, audited: None,
                                                      shown: list[dict[int, str]]) -> None:
    test = opened("data", dataset=dataset.name)
    assert test.button(key="audit-show").label == "Audit: 7 findings"
    assert not shown
    test.button(key="audit-show").click().run()
    assert test.query_params["view"] == "audit"
    assert count_in_tabs(test) == 7, "an image a little smaller than the others is no finding"
    offer(test).click().run()
    assert count_in_tabs(test) < 7
    assert "audit-show" not in {button.key for button in test.button}, "the audit is in view"
    left = opened("data", dataset=dataset.name)
    assert left.button(key="audit-show").label == f"Audit: {count_in_tabs(test)} findings"
    first = opened("data", dataset=dataset.name, view="audit")
    assert first.query_params["finding"] not in ("exact", ["exact"]), "it begins where there is something to decide"
    assert "audit-next" not in {button.key for button in first.button}
    assert opened("data", dataset=dataset.name, view="audit", finding="exact").query_params["finding"] in (
        "exact", ["exact"])


def count_in_tabs(test: AppTest) -> int:
    """Return the sum of the numbers of the findings about which something can be decided."""
    decided = [option for option in option_texts(test) if not option.startswith(("Broken", "Excluded"))]
    return sum(int(number) for option in decided for number in re.findall(r"\d+", option))


def option_texts(test: AppTest) -> list[str]:
    """Return the texts of the control that chooses a finding."""
    control = next(group for group in test.get("button_group") if group.key == "audit-finding")
    return [option.content for option in control.proto.options]


def test_older_links_to_views_show_the_finding(dataset: Dataset, audited: None, shown: list[dict[int, str]]) -> None:
    for view, finding in (("duplicates", "near"), ("outliers", "outliers")):
        test = opened("data", dataset=dataset.name, view=view)
        assert (test.query_params["view"], test.query_params["finding"]) == ("audit", finding)
        assert not test.exception


def test_a_list_that_leaves_too_few_images_for_a_run_can_still_be_changed(dataset: Dataset) -> None:
    exclude(dataset, range(1, len(dataset)))
    test = audit_page(dataset)
    assert "17 images of this data set are excluded\\: include some again" in test.error[0].value
    assert test.button(key="audit-undo").disabled is False
    next(button for button in test.button if button.label == "Audit these images").click().run()
    assert "include some again" in test.error[-1].value
    test.button(key="audit-undo").click().run()
    assert not test.error
    assert excluded_images(dataset).tolist() == []


def test_exact_duplicates_are_grouped_excluded_and_included_again(
        dataset: Dataset, audited: None, shown: list[dict[int, str]]) -> None:
    test = audit_page(dataset)
    original, copy = index(dataset, "china/01.png"), index(dataset, "flower/copy.bmp")
    badges = {image: badge.split("\n")[:3] for image, badge in shown[-1].items()}
    assert badges == {copy: ["copies 1 ✕", "copy.bmp", "16 × 16 · 822 bytes"],
                      original: ["copies 1 ✕", "01.png", "16 × 16 · 580 bytes"]}, "a group of two classes"
    assert list(badges) == [copy, original], "the longer file first"
    assert "Exclude all but the kept copies (1)" in labels(test)
    assert not any(label.startswith("Next finding") for label in labels(test)), "this one is to decide"
    assert test.button(key="audit-undo").disabled
    prefer(dataset, [original])
    test.run()
    assert list(shown[-1]) == [original, copy]
    offer(test).click().run()
    assert excluded_names(dataset) == ("flower/copy.bmp",)
    assert "No two images have equal content." in texts(test)
    following = test.button(key="audit-next")
    assert re.fullmatch(r"Next finding: \w.* \(\d+\)", following.label)
    assert [toast.value for toast in test.toast] == ["Excluded 1 image."]
    test.button(key="audit-undo").click().run()
    assert excluded_names(dataset) == ()
    test.button(key="audit-undo").click().run()
    assert list(shown[-1]) == [copy, original]


def test_selected_images_are_excluded_and_listed(dataset: Dataset, audited: None,
                                                 shown: list[dict[int, str]]) -> None:
    test = audit_page(dataset, selected=f"{dataset.fingerprint[:6]}:3.5")
    test.button(key="audit-exclude").click().run()
    assert excluded_images(dataset).tolist() == [3, 5]
    assert "selected" not in test.query_params
    listed = audit_page(dataset, finding="excluded", selected=f"{dataset.fingerprint[:6]}:5.7")
    assert list(shown[-1]) == [3, 5]
    assert "New runs leave out 2 of 18 images." in texts(listed)
    listed.button(key="audit-include").click().run()
    assert excluded_images(dataset).tolist() == [3]


def test_near_duplicates_follow_the_settings_in_the_address(dataset: Dataset, audited: None,
                                                            shown: list[dict[int, str]]) -> None:
    audit_page(dataset, finding="near", compare="hash")
    pair = {index(dataset, "flower/09.png"), index(dataset, "flower/scaled.png")}
    assert set(shown[-1]) >= pair
    strict = audit_page(dataset, finding="near", compare="both", least_cosine="1.0")
    assert "No near-duplicates at these settings." in texts(strict)


def test_selected_copies_are_kept_or_taken_out_of_their_groups(dataset: Dataset, audited: None,
                                                               shown: list[dict[int, str]]) -> None:
    original, scaled = index(dataset, "flower/09.png"), index(dataset, "flower/scaled.png")
    chosen = {"finding": "near", "compare": "hash", "selected": f"{dataset.fingerprint[:6]}:{scaled}"}
    test = audit_page(dataset, **chosen)
    assert list(shown[-1]).index(original) < list(shown[-1]).index(scaled), "the larger first"
    test.button(key="audit-keep").click().run()
    assert decisions_of(dataset).preferred == (scaled,)
    assert list(shown[-1]).index(scaled) < list(shown[-1]).index(original)
    test = audit_page(dataset, **chosen)
    test.button(key="audit-different").click().run()
    assert "No near-duplicates at these settings." in texts(test)
    assert [original, scaled] in decisions_of(dataset).different.tolist()


def test_one_undo_reverts_exclusions_and_choices_in_the_order_of_the_session(
        dataset: Dataset, audited: None, shown: list[dict[int, str]]) -> None:
    scaled = index(dataset, "flower/scaled.png")
    test = audit_page(dataset, finding="near", compare="hash", selected=f"{dataset.fingerprint[:6]}:{scaled}")
    offer(test).click().run()
    excluded = excluded_names(dataset)
    assert len(excluded) == 1
    test.button(key="audit-undo").click().run()
    assert not excluded_names(dataset)
    test.session_state["selection"] = Selection(dataset.fingerprint, np.array([scaled]), 99)
    test.toggle(key="audit-selects").set_value(True).run()
    test.button(key="audit-keep").click().run()
    assert decisions_of(dataset).preferred == (scaled,)
    offer(test).click().run()
    assert len(excluded_names(dataset)) == 1
    test.button(key="audit-undo").click().run()
    assert not excluded_names(dataset)
    assert decisions_of(dataset).preferred == (scaled,), "the last action alone"
    test.button(key="audit-undo").click().run()
    assert not decisions_of(dataset).preferred
    assert test.button(key="audit-undo").disabled


def test_a_rejected_pair_stays_rejected_in_another_session_until_it_is_undone(dataset: Dataset, audited: None,
                                                                              shown: list[dict[int, str]]) -> None:
    scaled = index(dataset, "flower/scaled.png")
    near = {"finding": "near", "compare": "hash"}
    audit_page(dataset, **near, selected=f"{dataset.fingerprint[:6]}:{scaled}").button(
        key="audit-different").click().run()
    shown.clear()
    test = audit_page(dataset, **near)
    assert "No near-duplicates at these settings." in texts(test)
    assert not shown
    test.button(key="audit-undo").click().run()
    assert scaled in shown[-1]


@pytest.mark.slow
def test_a_thousand_images_are_excluded_in_one_decision_by_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                                 shown: list[dict[int, str]]) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(computed, "DEFAULT_BACKBONE", "pixels")
    run = create_run(spec("frozen", "digits", "all"), runs_folder())
    assert worker.work(run, analyse=False).state == "done"
    analysis_worker.keep(run, plan_analysis(kind="audit"), lambda _share, _step: None)
    digits = catalog.load("digits")
    test = audit_page(digits, finding="quality", check="information")
    scores = np.sort(quality_scores(facts_of(digits), "information"))
    test.slider(key="audit-limit-information").set_value(round(float(scores[1000]), 2)).run()
    button = offer(test)
    count = int(button.label.removeprefix("Exclude the first ").replace(",", ""))
    assert count >= 1000
    assert button.proto.shortcut == "e", "the key decides too"
    before = time.process_time()
    button.click().run()
    assert time.process_time() - before < 5
    assert len(excluded_images(digits)) == count
    test.button(key="audit-undo").click().run()
    assert not len(excluded_images(digits)), "one decision, and one undo"


def test_pairs_at_the_border_are_decided_with_keys_and_all_at_once(
        dataset: Dataset, audited: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = np.array([[1, 2], [3, 4], [5, 6]])

    def border(_audit: Any, _kept: Any, _settings: Any, decisions: Any) -> Any:
        decided = {tuple(pair) for pair in decisions.decided.tolist()}
        return np.array([pair for pair in pairs.tolist() if tuple(pair) not in decided]).reshape(-1, 2)

    monkeypatch.setattr("udml_core.exploration.audit.border_pairs", border)
    monkeypatch.setattr("udml_core.exploration.audit.Audit.agreement_of", lambda _self, rows: np.full(len(rows), 0.8))
    test = audit_page(dataset, finding="border")
    assert "3 pairs to decide" in texts(test)
    test.button(key="audit-pair-S-1-2").click().run()
    test.button(key="audit-pair-D-3-4").click().run()
    found = decisions_of(dataset)
    assert (found.same.tolist(), found.different.tolist()) == ([[1, 2]], [[3, 4]])
    test.button(key="audit-pair-U").click().run()
    test.button(key="audit-all-different").click().run()
    assert decisions_of(dataset).different.tolist() == [[3, 4], [5, 6]]
    assert "No pair to decide" in texts(test)
    test.button(key="audit-pair-U").click().run()
    assert "2 pairs to decide" in texts(test)


def test_each_check_of_quality_ranks_all_images_and_the_slider_moves_the_limit(
        dataset: Dataset, audited: None, shown: list[dict[int, str]]) -> None:
    test = audit_page(dataset, finding="quality", check="size")
    assert next(iter(shown[-1])) == index(dataset, "flower/scaled.png")
    assert len(shown[-1]) == len(dataset)
    assert re.search(r"\nsmaller than \d\d %\n", shown[-1][index(dataset, "flower/scaled.png")])
    test.slider(key="audit-limit-size").set_value(0.0).run()
    assert offer(test).label == "Exclude the first 0"
    test.slider(key="audit-limit-size").set_value(1.0).run()
    assert offer(test).label == "Exclude the first 1"
    offer(test).click().run()
    assert excluded_names(dataset) == ("flower/scaled.png",)


def poor_names(dataset: Dataset) -> dict[int, list[str]]:
    """Return the titles of the checks that find an image, by its index."""
    facts, names = stored_facts(dataset), dict[int, list[str]]()
    assert facts is not None
    for name, check in CHECKS.items():
        for image in poor_images(facts, np.ones(len(dataset), bool), name).tolist():
            names.setdefault(image, []).append(check.title)
    return names


def test_all_findings_of_quality_are_shown_with_reasons_and_excluded_in_one_step(
        dataset: Dataset, audited: None, shown: list[dict[int, str]]) -> None:
    poor = poor_names(dataset)
    assert len(poor) > 1
    test = audit_page(dataset, finding="quality")
    assert {image: badge.split("\n")[0].split(", ") for image, badge in shown[-1].items()} == poor
    assert list(shown[-1]) == list(poor), "the findings of each check in turn, the worst first"
    assert (offer(test).label, offer(test).proto.type) == (f"Exclude all {len(poor)}", "primary")
    offer(test).click().run()
    assert excluded_images(dataset).tolist() == sorted(poor)
    assert "No check of quality finds an image that is not excluded." in texts(test)
    test.button(key="audit-undo").click().run()
    assert not len(excluded_images(dataset)), "one step, and one undo"
    assert list(shown[-1]) == list(poor)


def test_a_line_of_the_audit_says_what_is_left_out_and_leads_to_the_race_and_to_the_search(
        dataset: Dataset, audited: None) -> None:
    test = audit_page(dataset, finding="quality")
    assert "New runs use all 18 images. **Next:**" in texts(test)
    offer(test).click().run()
    left_out = len(excluded_images(dataset))
    assert left_out
    assert f"New runs leave out {left_out} of 18 images. **Next:**" in texts(test)
    (link,) = [link.proto for link in test.get("page_link") if link.proto.label == "Search these images"]
    assert link.query_string == f"run={list_runs(runs_folder())[0].id}"
    test.button(key="advice-open").click().run()
    assert not test.exception
    assert test.query_params["view"] == "advice"
    assert "**Next:**" not in texts(test)


def test_a_click_on_a_ranking_that_was_replaced_excludes_nothing_else(dataset: Dataset, audited: None) -> None:
    test = audit_page(dataset, finding="quality", check="size")
    test.slider(key="audit-limit-size").set_value(1.0).run()
    before, facts = offer(test), stored_facts(dataset)
    assert facts is not None
    counts = {name: len(poor_images(facts, np.ones(len(dataset), bool), name)) for name in CHECKS}
    poor = poor_names(dataset)
    assert list(test.segmented_control(key="audit-check").options) == [f"All findings ({len(poor)})", *(
        f"{check.title} ({counts[name]})" if counts[name] else check.title for name, check in CHECKS.items())]
    assert any(counts.values())
    test.segmented_control(key="audit-check").set_value("aspect").run()
    test.slider(key="audit-limit-aspect").set_value(1.0).run()
    assert offer(test).key != before.key, "a late click cannot reach the images of another check"
    test.segmented_control(key="audit-check").set_value("size").run()
    assert offer(test).key == before.key


def test_leakage_names_the_halves_and_offers_the_training_copies(dataset: Dataset, audited: None,
                                                                 shown: list[dict[int, str]]) -> None:
    test = audit_page(dataset, finding="leakage", compare="both", least_cosine="1.0")
    original, copy = index(dataset, "china/01.png"), index(dataset, "flower/copy.bmp")
    assert shown[-1] == {original: "copies 1, train", copy: "copies 1, test"}  # zero-shot: the classes are the halves
    offer(test).click().run()
    assert excluded_images(dataset).tolist() == [original]


def test_outliers_small_classes_and_broken_files_are_shown(dataset: Dataset, audited: None,
                                                           shown: list[dict[int, str]]) -> None:
    page = audit_page(dataset, finding="outliers", fence="0.0")
    ranking = next(badges for badges in reversed(shown) if len(badges) == len(dataset))
    beyond = [badge for badge in ranking.values() if badge.startswith("▸")]
    assert 0 < len(beyond) <= 5  # a quarter of 18 images
    assert [badge[2:] for badge in beyond] == sorted((badge[2:] for badge in beyond), reverse=True)
    assert list(ranking.values())[:len(beyond)] == beyond
    limit = float(re.findall(r"a number above ([0-9.]+) count as findings", texts(page))[0])
    assert [float(badge.removeprefix("▸ ").split()[0]) > limit for badge in ranking.values()] == [
        badge in beyond for badge in ranking.values()], "the numbers below the images and the limit have one scale"
    assert next(iter(shown[-1])) == next(iter(ranking)), "the neighbors of the first outlier"
    small = audit_page(dataset, finding="classes", least_images="9")
    assert dataset.labels is not None
    assert set(shown[-1]) == set(np.flatnonzero(dataset.labels == 0).tolist())
    assert "china (8)" in texts(small)
    broken = audit_page(dataset, finding="broken")
    assert broken.table[-1].value.index.tolist() == ["flower/broken.png"]
    (skipped,) = dataset.skipped
    assert broken.table[-1].value["Reason"].tolist() == [escaped(skipped.reason)]


def test_a_list_is_imported_and_a_file_that_is_none_changes_nothing(dataset: Dataset, audited: None
                                                                    ) -> None:
    test = audit_page(dataset, finding="excluded")
    test.file_uploader(key="audit-file").upload("list.csv", b"image\nchina/02.png\n../x.png\n", "text/csv").run()
    test.button(key="audit-import").click().run()
    assert excluded_names(dataset) == ("china/02.png",)
    assert [toast.value for toast in test.toast] == ["Excluded 1 image. 1 name is not in this data set."]
    test.file_uploader(key="audit-file").upload("bad.csv", b"\xff\xfei\x00", "text/csv").run()
    test.button(key="audit-import").click().run()
    assert "could not be read" in test.error[0].value
    assert excluded_names(dataset) == ("china/02.png",)


def test_an_imported_list_has_a_switch(dataset: Dataset, audited: None) -> None:
    exclude(dataset, [4])
    exclude(dataset, [1, 2], "*issues*.csv")
    test = audit_page(dataset, finding="excluded")
    (switch,) = [toggle for toggle in test.toggle if toggle.label.startswith("Use the list")]
    assert switch.label == r"Use the list \*issues\*.csv (2 images)"
    assert switch.value
    switch.set_value(False).run()
    assert not test.exception
    assert excluded_images(dataset).tolist() == [4]
    (switch,) = [toggle for toggle in test.toggle if toggle.label.startswith("Use the list")]
    assert not switch.value
    switch.set_value(True).run()
    assert excluded_images(dataset).tolist() == [1, 2, 4]
    test.button(key="audit-undo").click().run()
    assert excluded_images(dataset).tolist() == [4]


def test_train_says_how_many_images_are_left_out(dataset: Dataset) -> None:
    exclude(dataset, [1, 2])
    test = opened("train", dataset=dataset.name, method="frozen", backbone="pixels")
    assert "This run leaves out the 2 images that you excluded." in texts(test)
    none = opened("train", dataset=dataset.name, method="frozen", backbone="pixels", exclusions="none")
    assert "that you excluded." not in texts(none)
    assert FINDINGS["excluded"] == "Excluded"
