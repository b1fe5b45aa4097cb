"""Home: the training that plays, the ways into the app, and the search for runs and images."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA
from streamlit.testing.v1 import AppTest

from pages.parts.draw.transport import Message
from pages.parts.home import instrument
from pages.parts.home.example_maps import maps_of
from pages.parts.home.story import tell_story
from pages.parts.shell.run_status import escaped
from tests.app.opening import opened, switched, texts
from tests.app.test_refine_page import components
from tests.app.test_run_picker import go
from tests.running import worked, write_digits
from udml_core.base.paths import ASSETS
from udml_core.data import catalog
from udml_core.data.encoders import Encoder
from udml_core.data.features import features_of
from udml_core.data.splits import fixed_sample, make_split
from udml_core.runs import Run, RunRequest, example_runs, list_runs, runs_folder
from udml_core.runs.analyses import finished_maps, plan_analysis
from udml_core.runs.baselines import baselines_of
from udml_core.runs.examples import SHOWCASE, point_of
from udml_core.runs.notes import Notes
from udml_core.runs.verdict import side_of
from udml_core.work import jobs
from udml_core.work.jobs.advising import TRIAL
from udml_core.work.jobs.follow_ups import wants
from udml_core.work.workers import train
from udml_core.work.workers.analyse import keep

pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture(scope="module")
def done(places: Path) -> Run:
    """A finished run on the digits, with a map of every epoch."""
    run = worked(places / "runs")
    frames = tuple(map(str, run.epoch_numbers()))
    keep(run, plan_analysis(kind="pca", scope="sample", frames=frames), lambda _share, _step: None)
    return run


@pytest.fixture(autouse=True)
def _self_contained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instrument, "Message", lambda: Message(self_contained=True))


def sent(test: AppTest) -> tuple[dict[str, Any], bytes]:
    """Return the header and the parts of the message to the instrument."""
    message, = (element.proto.bytes for element in test.get("bidi_component")
                if "instrument" in element.proto.component_name)
    length = int.from_bytes(message[:4], "little")
    return json.loads(message[4 : 4 + length]), message[4 + length :]


def array(part: dict[str, int], parts: bytes, kind: Any) -> np.ndarray:
    """Return an array that traveled inside a message."""
    return np.frombuffer(parts[part["at"] : part["at"] + part["length"]], dtype=kind)


def test_home_begins_with_the_folder_that_was_opened_until_it_has_a_search(
        done: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "your folder is open" not in texts(opened("home"))
    folder = write_digits(tmp_path / "*birds*", 12)
    catalog.remember(folder)
    try:
        test = opened("home")
        assert not test.exception
        assert "**\\*birds\\***: your folder is open." in texts(test)
        links = {link.proto.label: link.proto.query_string for link in test.get("page_link")}
        assert "birds" in links["Open my images"]
        assert "view=advice" in links["Find the best search"]
        assert "Search opens when its images are compared" in texts(test)
        live = SimpleNamespace(run=SimpleNamespace(spec=lambda: SimpleNamespace(dataset=str(folder))))
        monkeypatch.setattr("pages.parts.home.own_images.live_races", lambda _: [live])
        links = [link.proto.label for link in opened("home").get("page_link")]
        assert "Follow the race for the best search" in links
        assert "Find the best search" not in links
        assert "Search these images" not in [button.label for button in test.button]
    finally:
        catalog.forget(folder)


def test_home_of_an_opened_folder_leads_to_its_search_and_shows_its_map(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda *_: None)
    monkeypatch.delenv("UDML_EXAMPLES")
    place = write_digits(tmp_path / "birds", 12)
    folder = str(place)
    assert "An example, until" not in texts(opened("home"))
    catalog.remember(folder)
    try:
        dataset = catalog.load(folder)
        waiting = jobs.submit(jobs.plan(RunRequest(dataset=folder, method="frozen", backbone="pixels"), dataset),
                              runs_folder())
        test = opened("home")
        assert "An example, until your images are compared." in texts(test)
        assert "Search opens when your images are compared." in str([bar.proto for bar in test.get("progress")])
        assert "Search these images" not in [button.label for button in test.button]
        train.work(waiting)
        for of in finished_maps(waiting):
            shutil.rmtree(of.folder)
        test.run()
        assert not test.exception
        assert "An example, until the map of your images is ready." in texts(test)
        keep(waiting, plan_analysis(kind="pca", frames=("final",)), lambda _share, _step: None)
        test.run()
        assert not test.exception
        assert "**The map of birds**" in texts(test)
        assert "instrument" not in [of.proto.component_name for of in test.get("bidi_component")]
        assert "An example, until" not in texts(test)
        assert sent(opened("home", run=SHOWCASE))[0]["token"].startswith(SHOWCASE), "a link names a run"
        search = test.button(key="home-search-folder")
        assert (search.label, search.proto.type) == ("Search these images", "primary")
        search.click().run()
        assert test.title[0].value == "Search"
        assert waiting.id in test.query_params["run"]
    finally:
        catalog.forget(place)


def test_home_sends_every_epoch_of_a_training_once(done: Run) -> None:
    header, parts = sent(opened("home"))
    epochs, count = len(done.epoch_numbers()), len(done.sample_indices())
    assert header["epochs"] == ["before training", "epoch 1", "after training"], "named as on every other page"
    assert array(header["positions"], parts, np.float32).shape == (2 * epochs * count,)
    rows = array(header["neighbors"], parts, np.int32).reshape(epochs, count, 10)
    assert rows.min() >= 0
    assert rows.max() < count
    whole, first = ([100 * row[f"sample {name}"] for row in done.metrics()[0]] for name in ("map@r", "recall@1"))
    assert [measure["values"] for measure in header["bars"]["measures"]] == [
        pytest.approx(whole), pytest.approx(first, abs=0.01)], "the first stands above the map"
    labels = done.dataset().labels
    assert labels is not None
    assert array(header["classes"], parts, np.int32).tolist() == labels[done.sample_indices()].tolist()


def test_a_query_of_home_is_compared_with_pca_of_the_same_width(done: Run) -> None:
    header, parts = sent(opened("home"))
    features = features_of(done.dataset(), Encoder(done.spec().encoder)).astype(float)
    sample = done.sample_indices()
    units = features / np.linalg.norm(features, axis=1, keepdims=True)
    width = done.embeddings("final").shape[1]
    points = PCA(width).fit(units[done.spec().halves(done.dataset()).train]).transform(units[sample])
    if done.is_normalized("final"):
        points /= np.linalg.norm(points, axis=1, keepdims=True)
    distances = ((points[:, None] - points) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    rows = array(header["rival"]["neighbors"], parts, np.int32).reshape(len(sample), 10)
    assert (rows[:, 0] == distances.argmin(axis=1)).mean() > 0.99, "ties apart"
    assert header["rival"]["name"] == f"with PCA, {width} numbers"
    assert header["chosen"] == "Training and PCA differ here", "it is not drawn at random"


def test_home_offers_three_ways_and_the_first_run(done: Run) -> None:
    test = opened("home")
    assert not test.exception
    links = [link.proto.label for link in test.get("page_link")]
    assert {"Try it live", "Learn", "Or name a folder on this computer, or an archive"} <= set(links)
    assert test.file_uploader(key="home-upload")
    assert "Train RPML now" in [button.label for button in test.button]


def test_home_plays_the_showcase_whatever_was_trained_since(done: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UDML_EXAMPLES")
    test = opened("runs", run=done.id)
    test.query_params.clear()
    switched(test, "home")
    assert sent(test)[0]["token"].startswith(SHOWCASE), "neither the newest run nor the run of the other pages"
    assert sent(opened("home", run=done.id))[0]["token"].startswith(done.id), "a link names a run"
    monkeypatch.setenv("UDML_EXAMPLES", "0")
    assert sent(opened("home"))[0]["token"].startswith(done.id), "without examples the newest run"


def test_a_run_chosen_in_the_sidebar_of_home_is_played(done: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UDML_EXAMPLES")
    test = opened("home")
    assert sent(test)[0]["token"].startswith(SHOWCASE)
    box = test.selectbox(key="choose-run")
    other = next(run for run in example_runs() if run.spec().method == "nml")
    box.set_value(other.id).run()
    assert sent(test)[0]["token"].startswith(other.id)


def test_every_example_says_what_it_shows(monkeypatch: pytest.MonkeyPatch, done: Run) -> None:
    monkeypatch.delenv("UDML_EXAMPLES")
    shown = texts(opened("home"))
    for run in example_runs():
        assert escaped(point_of(run)) in shown.replace("**", ""), "its figures are bold"


def drop(folders: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """Drop images of two digits on Home, each digit in a folder below `pets`."""
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    written = write_digits(tmp_path / "written", 30)
    files = [(f"pets/{folder}/{path.name}", path.read_bytes(), "image/png") for digit, folder in enumerate(folders)
             for path in (written / f"class {digit}").iterdir()]
    test = opened("home")
    test.file_uploader(key="home-upload").set_value(files).run()
    assert not test.exception
    assert not test.error
    return test


@pytest.mark.usefixtures("done")
def test_dropped_images_in_one_level_of_folders_open_with_the_best_search_beside_them(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_MAPS", "1")
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda *_: None)
    test = drop(("zero", "one"), tmp_path, monkeypatch)
    assert test.title[0].value == "Data"
    assert "Find the best search" in [button.label for button in test.button]
    assert components(test, "gallery")[0]["tiles"], "the images are there at once"
    assert "data-browsing-" in repr(test.session_state), "the features are followed by the map"
    assert any(wants(run, "audit") for run in list_runs(runs_folder())), "an import is audited"
    assert Path(str(test.query_params["dataset"])).name == "pets"


def test_the_door_of_a_folder_ends_in_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda *_: None)
    monkeypatch.setenv("UDML_RUNS", str(tmp_path / "runs"))
    test = drop(("zero", "one"), tmp_path, monkeypatch)
    assert test.title[0].value == "Data"
    assert "Search opens when they are compared." in str([bar.proto for bar in test.get("progress")])
    frozen, = (run for run in list_runs(runs_folder()) if run.spec().method == "frozen")
    train.work(frozen)
    test.run()
    assert not test.exception
    assert test.title[0].value == "Search"
    assert frozen.id in test.query_params["run"]


@pytest.mark.usefixtures("done")
def test_a_folder_that_is_dropped_again_gets_a_name_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda *_: None)
    for _ in range(2):
        test = drop(("zero", "one"), tmp_path, monkeypatch)
        assert test.title[0].value == "Data"
        shutil.rmtree(tmp_path / "written")
    assert sorted(path.name for path in (tmp_path / "cache" / "imports").iterdir()) == ["pets", "pets 2"]


@pytest.mark.usefixtures("done")
def test_a_dropped_tree_asks_which_folders_are_the_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udml_core.work.jobs.launch.launch", lambda *_: None)
    test = drop(("left/zero", "right/one"), tmp_path, monkeypatch)
    assert [element.value for element in test.title] != ["Data"]
    levels = test.radio[0]
    assert [option.split(" (")[0] for option in levels.options] == ["No classes", "Level 1: 2 classes: left",
                                                                   "Level 2: 2 classes: one"]
    levels.set_value(2).run()
    test.button(key="home-search").click().run()
    assert not test.exception
    assert test.title[0].value == "Data"
    assert str(test.query_params["dataset"]).endswith("/pets#level=2")
    assert not test.warning, "the data set is listed"
    assert len(list((tmp_path / "cache" / "imports").iterdir())) == 1, "the files are stored once"


def test_home_names_the_run_and_says_what_training_did_beside_what_needs_no_training(done: Run) -> None:
    test = opened("home")
    header, _ = sent(test)
    words = next(element.proto.body for element in test.get("html") if "home-story" in element.proto.body)
    assert "<b>The picture: RPML on Digits</b>" in words
    rows, baselines = done.metrics()[0], baselines_of(done, done.dataset())
    assert baselines is not None
    before, after = (f"<b>{100 * row['sample recall@1']:.1f} %</b>" for row in (rows[0], rows[-1]))
    assert f"from {before} to {after}" in words
    assert "RPML receives no labels and forms clusters of nearby images" in words
    shares = {name: 100 * baselines[name]["sample recall@1"] for name in ("frozen", "centered pca")}
    assert (f"Without training, PCA with the same 16 dimensions reaches {shares['centered pca']:.1f} % and the pixels "
            f"themselves with all 64 dimensions reach {shares['frozen']:.1f} %.") in words
    bars = header["bars"]
    assert [(rival["name"], rival["note"]) for rival in bars["rivals"]] == [
        ("raw pixels", "64 numbers"), ("PCA", "16 numbers")]
    assert bars["own"] == {"name": "RPML", "note": "16 numbers"}
    assert [measure["name"] for measure in bars["measures"]] == ["Whole group found", "First result right"]
    for measure, key in zip(bars["measures"], ("sample map@r", "sample recall@1"), strict=True):
        assert measure["values"] == pytest.approx([100 * row[key] for row in rows], abs=0.01)
        assert measure["rivals"] == pytest.approx(
            [100 * baselines[name][key] for name in ("frozen", "centered pca")])
        assert measure["sides"] == [side_of(value, measure["rivals"], header["count"]) for value in measure["values"]]
    assert -1 in bars["measures"][1]["sides"], "a random start is clearly below the pixels"


def test_the_story_says_what_a_run_did_and_that_frozen_features_learned_nothing(
        done: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UDML_EXAMPLES")
    assert "is **88.1 %**" in tell_story(done, np.array([88.11, 88.14]), []), "equal values neither rise nor fall"
    assert "falls from **88.1 %** to **88.0 %**" in tell_story(done, np.array([88.11, 88.04]), [])
    example = next(run for run in example_runs() if run.spec().method == "plm")
    assert "PLM receives no labels and pulls images together that lie on one smooth surface" in tell_story(
        example, None, [])
    frozen = worked(tmp_path, method="frozen")
    assert tell_story(frozen, np.array([96.1, 96.1]), []) == (
        "The map shows images. Gray images and points have the color of their class. Nothing was trained: the images "
        "are compared by the pixels themselves. First result right, the share of images whose nearest image has "
        "the same class, is **96.1 %**.")


def test_examples_say_that_they_are_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UDML_EXAMPLES")
    example = example_runs()[0]
    test = opened("home", run=example.id)
    assert any("<b>The picture: Example: " in element.proto.body for element in test.get("html"))


def test_of_a_large_sample_the_images_that_curves_judge_are_played(done: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instrument, "MOST_PLAYED", 50)
    instrument._load_instrument.clear()
    instrument._load_bars.clear()
    header, parts = sent(opened("home"))
    instrument._load_instrument.clear()
    instrument._load_bars.clear()
    dataset = done.dataset()
    judged = fixed_sample(make_split(dataset, "seen").test, 50)
    assert dataset.labels is not None
    assert array(header["classes"], parts, np.int32).tolist() == dataset.labels[judged].tolist()


def test_the_query_and_the_epoch_of_home_are_those_of_explore(done: Run,
                                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    real, view = instrument.component, {"token": "another run", "query": 7, "epoch": 1}
    monkeypatch.setattr(instrument, "component", lambda *names: lambda **options: real(*names)(**options) and
                        SimpleNamespace(view=view, searched=None, opened=None))
    test = opened("home")
    view["token"] = sent(test)[0]["token"]
    assert "app-image" not in test.session_state, "the query of another run is no image of this one"
    test.run()
    go(test, "explore")
    assert test.query_params["picked"] in (str(done.sample_indices()[7]), [str(done.sample_indices()[7])])
    assert "**Epoch 1** ·" in texts(test), "the neighbors belong to the epoch"
    assert "epoch 1" in shown_frame(test), "the map shows the epoch as well"
    view["epoch"] = None
    switched(test, "home")
    assert sent(test)[0]["query"] == 7, "Home shows the current image, too"
    assert "**After training** ·" in texts(go(test, "explore")), "a training that plays stands at no epoch"


@pytest.mark.parametrize("picked", ["nonsense", "9" * 400, "nan", "-3"])
def test_home_ignores_a_current_image_that_is_no_image(picked: str, done: Run) -> None:
    test = opened("explore", run=done.id, picked=picked)
    test.query_params.clear()
    switched(test, "home")
    assert not test.exception
    assert sent(test)[0]["count"] == len(done.sample_indices())


def shown_frame(test: AppTest) -> str:
    """Return what the page Map says that its map shows, for screen readers."""
    return str(components(test, "scatter")[0]["label"])


def test_a_run_without_its_data_set_leaves_the_start_button(done: Run) -> None:
    spec = done.folder / "spec.json"
    before = spec.read_text(encoding="utf-8")
    try:
        spec.write_text(before.replace('"digits"', '"/nowhere"'), encoding="utf-8")
        test = opened("home")
        assert not test.exception
        assert "Train RPML now" in [button.label for button in test.button]
        assert "nowhere" in texts(test)
    finally:
        spec.write_text(before, encoding="utf-8")


def test_no_style_hides_what_has_arrived() -> None:
    style = (ASSETS / "app.css").read_text(encoding="utf-8")
    assert "visibility" not in style
    assert "opacity: 0;" not in style


def test_runs_that_a_race_started_are_not_played_unless_they_are_chosen(done: Run) -> None:
    trial = Run(shutil.copytree(done.folder, done.folder.with_name("20990101-000000-rpml-c1b2c3")))
    try:
        trial.write_notes(Notes.make(tags=(TRIAL,)))
        assert sent(opened("home"))[0]["token"].startswith(done.id)
        assert sent(opened("home", run=trial.id))[0]["token"].startswith(trial.id)
    finally:
        shutil.rmtree(trial.folder)


def test_the_box_in_the_sidebar_of_home_shows_the_run_that_plays(done: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UDML_EXAMPLES")
    test = opened("runs", run=done.id)
    test.query_params.clear()
    assert switched(test, "home").selectbox(key="choose-run").value == SHOWCASE
    assert opened("home", run=done.id).selectbox(key="choose-run").value == done.id


def test_each_example_has_a_picture_and_words_without_acronyms_of_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UDML_EXAMPLES")
    for run in example_runs():
        picture = maps_of(run)
        assert picture is not None
        left, right = (np.asarray(picture.crop((x, 0, x + 300, 300)))[..., 3] for x in (0, picture.width - 300))
        assert (left > 0).mean() > 0.02 < (right > 0).mean()
        assert (left != right).mean() > 0.02, "training moves the points"
        assert not {"R@1", "MAP@R"} & set(point_of(run).split())
