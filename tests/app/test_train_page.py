"""The page Train through Streamlit's AppTest: options from links, and the request."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
import pytest
import streamlit as st
from pydantic import Field
from streamlit.testing.v1 import AppTest

from pages.parts.draw.form import first_fields
from pages.parts.draw.result_bars import bars_of, protocol_of
from pages.parts.shell.method_lines import LINES, line_of
from pages.parts.shell.run_status import escaped
from pages.parts.train import measures
from pages.parts.train.cluster_counts import cluster_counts, count_words
from pages.parts.train.encoder_choice import SECOND
from pages.parts.train.method_cards import MARKS, SUGGESTED, card_groups, lacking
from pages.parts.train.method_choice import choose_method, lacks_labels
from pages.parts.train.slider_words import effect_of
from pages.parts.train.tried import TriedAlpha, tried_alpha
from pages.views.train import DECIDES_TIME, FIELDS_AT_ONCE
from tests.app.opening import opened, switched, texts
from tests.app.test_advice_page import finished
from tests.exploration.test_race import comparison
from tests.running import trained, worked, write_digits
from udml_core.base.declaration import Shown
from udml_core.base.errors import UserError
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.encoders import Encoder, choose_spec
from udml_core.data.features import features_of, features_path
from udml_core.data.given.labels import assign
from udml_core.data.speed import measured_speed, record_speed
from udml_core.exploration.race import Outcome, Setup
from udml_core.methods import METHODS, find_method
from udml_core.results.label_free import record_words
from udml_core.results.records import FOLDER
from udml_core.runs import (
    Run,
    RunRequest,
    Spec,
    create_run,
    example_runs,
    hide_examples,
    list_runs,
    runs_folder,
)
from udml_core.runs.analyses.kinds.opinion import Verdicts
from udml_core.runs.tasks import Status
from udml_core.runs.verdict import Standing
from udml_core.work import jobs
from udml_core.work.jobs.estimate import encoding_kind, evaluation_kind, follow_kind, record_epoch, start_kind


class PatientRequest(RunRequest):
    """A run request with a further option."""

    patience: Annotated[int, Field(ge=1, le=9), Shown(label="Patience", unit="epochs", step=2)] = 3
    """Number of epochs without improvement before training stops."""

    augment: bool = True
    """Whether images are augmented."""


def values_of(test: AppTest) -> dict[str, Any]:
    """Return the values of all widgets by key."""
    kinds = ("selectbox", "number_input", "slider", "select_slider", "toggle")
    return {widget.key: widget.value for kind in kinds for widget in test.get(kind)}


def key_of(test: AppTest, field: str) -> str:
    """Return the key of a hyper-parameter's widget, which also names the settings that the form begins with."""
    (key,) = (key for key in values_of(test) if key and key.startswith("train-") and key.endswith(f"-{field}"))
    return key


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> list[Spec]:
    """Specs of the runs that the page starts; no worker is started."""
    specs: list[Spec] = []

    def submit(spec: Spec, root: Any, pairs: Any = None) -> Run:
        specs.append(spec)
        return create_run(spec, root, pairs)

    monkeypatch.setattr(jobs, "submit", submit)
    return specs


def start(test: AppTest) -> AppTest:
    return next(button for button in test.button if button.label == "Start training").click().run()


@pytest.mark.parametrize(("method", "option"), [("rpml", "seed"), ("rpml", "size"), ("ssdml", "labels_per_class")])
def test_an_infinite_number_in_a_link_is_ignored(method: str, option: str) -> None:
    """Streamlit's own field fails on it."""
    test = opened("train", dataset="digits", method=method, **{option: "1e309"})
    assert not test.exception
    assert values_of(test)[option] in (0, None)
    assert option not in test.query_params


def test_a_link_sets_every_option() -> None:
    test = opened("train", dataset="digits", method="rpml", backbone="pixels", pooling="rmac", size="32", split="seen",
                  device="cpu", seed="7", select="validation")
    assert not test.exception
    assert values_of(test) | {"backbone": "pixels", "pooling": "rmac", "size": 32, "split": "seen", "device": "cpu",
                              "seed": 7, "select": "validation"} == values_of(test)


def test_a_backbone_outside_the_list_is_read_from_the_link() -> None:
    test = opened("train", dataset="digits", backbone="timm:no-such-network")
    assert not test.exception
    assert test.selectbox(key="backbone").value == "timm:no-such-network"
    assert escaped("timm:no-such-network") in test.error[0].value


def test_assigned_labels_and_few_labels_are_read_from_the_link() -> None:
    test = opened("train", dataset="digits", method="ssdml", backbone="pixels", labels="given")
    assert test.selectbox(key="labels").value == "given"
    assert "0 images have an assigned label" in texts(test)
    test = opened("train", dataset="digits", method="ssdml", backbone="pixels", labels_per_class="4")
    assert test.selectbox(key="labels").value == "drawn"
    assert test.number_input(key="labels_per_class").value == 4


@pytest.mark.parametrize("nonsense", [{"split": "nonsense", "seed": "-1", "size": "x", "select": "", "pooling": "1",
                                       "device": "", "backbone": "", "most_pairs": "1e99"},
                                      {"split": "", "seed": "x", "size": "3", "select": "best", "most_pairs": "x"}])
def test_invalid_options_in_a_link_are_ignored(nonsense: dict[str, str]) -> None:
    test = opened("train", dataset="digits", method="nml", **nonsense)
    assert not test.exception
    values = values_of(test)
    for name in nonsense:
        assert values[name] == RunRequest.model_fields[name].get_default(), name


def test_a_start_submits_the_chosen_options(submitted: list[Spec]) -> None:
    test = opened("train", dataset="digits", method="pca", backbone="pixels", seed="7")
    test.selectbox(key="split").select("seen").run()
    test.number_input(key="size").set_value(32).run()
    assert not test.error
    start(test)
    (spec,) = submitted
    assert (spec.dataset, spec.method, spec.split, spec.seed) == ("digits", "pca", "seen", 7)
    assert (spec.encoder.backbone, spec.encoder.size) == ("pixels", 32)


def test_options_left_open_are_resolved_by_the_data_set(submitted: list[Spec]) -> None:
    start(opened("train", dataset="digits", method="pca", backbone="pixels", size="32"))
    assert (submitted[0].split, submitted[0].select) == ("zero-shot", "last")


def test_an_invalid_combination_is_explained_and_nothing_starts(submitted: list[Spec]) -> None:
    test = opened("train", dataset="digits", method="ssdml", backbone="pixels", labels_per_class="900", split="seen")
    assert test.error[0].value.startswith("Labels per class must be")
    assert "Start training" not in [button.label for button in test.button]


def patient_form() -> None:
    """Show the form of `PatientRequest` and the validated request."""
    import streamlit as st

    from pages.parts.draw.form import option_form
    from pages.parts.shell.user_errors import show_user_errors
    from tests.app.test_train_page import PatientRequest

    values = option_form(PatientRequest, ("seed", "patience", "augment"))
    with show_user_errors():
        request = PatientRequest.make({"dataset": "digits", "method": "pca"} | values)
        st.json(request.model_dump(include={"seed", "patience", "augment"}))


def test_a_further_declared_option_appears_in_the_form_and_in_the_link() -> None:
    test = AppTest.from_function(patient_form, default_timeout=60)
    test.query_params.update({"patience": "7", "augment": "false"})
    test.run()
    assert not test.exception
    assert values_of(test) == {"seed": 0, "patience": 7, "augment": False}
    slider = test.slider(key="patience")
    assert (slider.label, slider.min, slider.max, slider.step) == ("Patience in epochs", 1, 9, 2)
    assert slider.help == ("Number of epochs without improvement before training stops. "
                           "Allowed: a whole number between 1 and 9 epochs.")
    slider.set_value(5).run()
    assert '"patience": 5' in test.json[0].value.replace('":5', '": 5')


def test_every_further_declared_option_appears_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(*_request: object) -> None:
        raise UserError("No run is planned.")

    for module in ("pages.views.train", "pages.parts.train.data_choice", "pages.parts.train.encoder_choice"):
        monkeypatch.setattr(f"{module}.RunRequest", PatientRequest)
    monkeypatch.setattr(jobs, "plan", reject)
    test = opened("train", dataset="digits", method="pca", backbone="pixels+cnn", patience="7")
    assert not test.exception
    values = values_of(test)
    assert values | {"patience": 7, "augment": True} == values
    everywhere = {name for name in PatientRequest.model_fields
                  if name not in ("dataset", "method", "fields", "labels", "labels_per_class", "most_pairs")}
    assert everywhere <= set(values)


@pytest.mark.parametrize("patience", [0, 10, "5", 2.5])
def test_a_further_declared_option_is_validated(patience: object) -> None:
    with pytest.raises(UserError, match=r"patience must be a whole number between 1 and 9 epochs, got"):
        PatientRequest.make({"dataset": "digits", "method": "pca", "patience": patience})


def test_the_papers_settings_fill_the_form_and_the_run(submitted: list[Spec]) -> None:
    test = opened("train", dataset="fashion-mini", method="ssdml", preset="paper")
    assert not test.exception
    assert not test.error
    values = values_of(test)
    assert (values[key_of(test, "alpha")], values[key_of(test, "scale")]) == (40.0, "sum")
    assert "The paper of SSDML reports NMI, R@1, R@2, R@4, R@8." in texts(test)
    assert "Departures from the paper: 0" not in texts(test)
    assert "No departures from the paper" in [expander.label for expander in test.expander]
    start(test)
    (spec,) = submitted
    assert (spec.preset, spec.backbone, spec.split, spec.select) == ("paper", "lenet", "seen", "recall")
    assert (spec.labels_per_class, spec.fields["epochs"], spec.fields["trains"]) == (10, 50, "all")


def test_values_that_differ_from_the_paper_are_listed(submitted: list[Spec]) -> None:
    test = opened("train", dataset="fashion-mini", method="ssdml", preset="paper", seed="4")
    test.slider(key=key_of(test, "epochs")).set_value(2).run()
    assert "Departures from the paper: 1" in [expander.label for expander in test.expander]
    assert "epochs: 2 in place of 50 (implementation details: at most 50)" in texts(test)
    start(test)
    assert (submitted[0].fields["epochs"], submitted[0].seed) == (2, 4)


def test_a_method_without_a_paper_keeps_its_defaults(submitted: list[Spec]) -> None:
    test = opened("train", dataset="digits", method="frozen", preset="paper", backbone="pixels")
    assert "No paper prints settings for" in test.info[0].value
    start(test)
    assert submitted[0].preset == "default"


@pytest.mark.parametrize("method", ["plm", "ssdml", "rpml"])
def test_the_three_fields_that_matter_most_and_the_epochs_are_outside_the_expander(method: str) -> None:
    test = opened("train", dataset="digits", method=method, backbone="pixels")
    assert not test.exception
    more = next(expander for expander in test.expander if expander.label.startswith("More settings"))
    inside = {widget.key for kind in ("selectbox", "slider", "select_slider", "toggle", "number_input")
              for widget in more.get(kind)}
    keys = {key for key in values_of(test) if key and key.startswith(f"train-{method}-")}
    names = {key.rpartition("-")[2] for key in keys - inside}
    assert names == {*find_method(method).form_fields()[0][:3], "epochs"}, "the epochs decide how long a run takes"
    assert len(keys) == len(find_method(method).model_fields)


@pytest.mark.parametrize("method", [method.card.name for method in METHODS])
def test_every_setting_outside_the_expander_says_what_it_does(method: str) -> None:
    declared = find_method(method)
    shown = first_fields(declared, FIELDS_AT_ONCE, DECIDES_TIME)
    assert len(declared.model_fields) - len(shown) != 1, "no expander for a single field"
    assert shown.index("epochs") < 2 if "epochs" in declared.model_fields else "epochs" not in shown, "in sight"
    for name in shown:
        effect = effect_of(method, name)
        assert 0 < len(effect) <= 90, (method, name)
        assert effect.endswith(".")


def test_field_values_are_read_from_the_link_and_written_to_it(submitted: list[Spec]) -> None:
    test = opened("train", dataset="digits", method="rpml", backbone="pixels",
                  fields="alpha:30,dimension:16,steps:7,epochs:900,nonsense:1,epsilon:2")
    assert not test.exception
    values = values_of(test)
    assert [values[key_of(test, name)] for name in ("alpha", "dimension", "steps")] == [30.0, 16, 7]
    assert values[key_of(test, "epochs")] == 900, "beyond the slider, but allowed"
    test.slider(key=key_of(test, "alpha")).set_value(20.0).run()
    assert test.query_params["fields"] == "alpha:20.0,dimension:16,epochs:900,steps:7"
    start(test)
    assert {name: submitted[0].fields[name] for name in ("alpha", "dimension", "steps", "epochs", "epsilon")} == {
        "alpha": 20.0, "dimension": 16, "steps": 7, "epochs": 900,
        "epsilon": find_method("rpml").model_fields["epsilon"].get_default()}


def test_a_start_like_a_run_has_its_settings(submitted: list[Spec]) -> None:
    request = RunRequest.make({"dataset": "digits", "method": "plm", "backbone": "pixels", "size": 16, "seed": 5,
                               "split": "seen", "select": "validation",
                               "fields": {"dimension": 32, "through": "origin", "whole_view": False}})
    run = create_run(jobs.plan(request, catalog.load("digits")), runs_folder())
    test = opened("train", like=run.id)
    assert not test.exception
    assert not test.error
    start(test)
    same = {"created"}
    assert submitted[0].model_dump(exclude=same) == run.spec().model_dump(exclude=same)


def test_a_link_like_a_missing_run_says_so() -> None:
    test = opened("train", like="nothing")
    assert not test.exception
    assert "The link's run could not be used" in test.warning[0].value


def test_the_choices_are_kept_after_a_start(submitted: list[Spec]) -> None:
    test = opened("train", dataset="digits", method="rpml", backbone="pixels", size="32", fields="dimension:16")
    test.slider(key=key_of(test, "alpha")).set_value(20.0).run()
    start(test)
    assert len(submitted) == 1
    for name in list(test.query_params):
        del test.query_params[name]
    switched(test, "home")
    switched(test, "train")
    assert not test.exception
    start(test)
    assert len(submitted) == 2
    same = {"created"}
    assert submitted[1].model_dump(exclude=same) == submitted[0].model_dump(exclude=same)


def test_the_expected_time_says_whether_it_was_measured_here(submitted: list[Spec]) -> None:
    link = {"dataset": "digits", "method": "pca", "backbone": "pixels", "split": "seen", "fields": "dimension:9",
            "size": "9"}
    test = opened("train", **link)
    words = texts(test)
    assert "has not been measured here yet" in words
    assert " s," not in words.split("Its time has not")[1][:90], "no number that was not measured"
    start(test)
    (spec,) = submitted
    record_speed(encoding_kind(spec), 0.01)
    record_epoch(spec, 1438, 40.0)
    record_speed(evaluation_kind(spec), 5.0)
    assert "has not been measured" in texts(opened("train", **link)), "the start of the process was never measured"
    record_speed(start_kind(spec), 4.0)
    record_speed(follow_kind(spec), 3.0)
    words = texts(opened("train", **link))
    assert "**About 70 s**, measured here" in words
    assert "start 4 s, features 18 s, training 40 s, evaluation 5 s, first map 3 s" in words
    assert "has not been measured" not in words


def test_a_finished_run_has_measured_its_start_its_evaluation_and_its_map(root: Path) -> None:
    fields = {"dimension": 8}
    trained(root, method="pca", fields=fields)  # features may be computed; then the start is not measured
    spec = trained(root, method="pca", fields=fields, seed=1).spec()
    for kind in (start_kind, evaluation_kind):
        assert (measured_speed(kind(spec)) or 0) > 0


def test_the_slider_of_the_dimension_shows_what_few_images_allow(submitted: list[Spec], tmp_path: Path) -> None:
    catalog.remember(write_digits(tmp_path / "few", 9, by_class=False))
    link = {"dataset": str(tmp_path / "few"), "method": "pca", "backbone": "pixels"}
    test = opened("train", **link)
    assert values_of(test)[key_of(test, "dimension")] == 9
    assert "The dimension begins at 9, not at the default of 128" in texts(test)
    assert "fields" not in test.query_params
    start(test)
    assert submitted[0].fields["dimension"] == 9
    few = opened("train", **link, fields="dimension:4")
    assert values_of(few)[key_of(few, "dimension")] == 4


def test_the_method_is_explained_in_plain_words_with_its_terms_behind_the_question_mark() -> None:
    card = find_method("rpml").card
    text = next(text for text in opened("train", dataset="digits", method="rpml").markdown
                if text.value == card.summary)
    assert card.idea in text.proto.help
    assert card.paper in text.proto.help


def test_quick_settings_take_about_a_minute(submitted: list[Spec]) -> None:
    test = opened("train", dataset="digits", method="srpml", preset="quick", backbone="pixels", fields="dimension:16")
    assert not test.exception
    assert values_of(test)["preset"] == "quick"
    start(test)
    assert (submitted[0].fields["trains"], submitted[0].fields["kept_views"]) == ("head", 2)
    assert submitted[0].preset == "default"


def test_best_settings_name_their_evidence_and_the_best_method(submitted: list[Spec]) -> None:
    test = opened("train", dataset="digits", method="rpml", preset="best", backbone="pixels", fields="dimension:16")
    assert "RPML ends level with PCA" in texts(test)
    assert "the records favor whitening" in texts(test)
    start(test)
    assert submitted[0].fields["beginning"] == "pca"


def clusters_at(test: AppTest, epsilon: float) -> str:
    """Return the preview's sentence on the clusters at ε, which the page shows first."""
    shown, = (json.loads(element.proto.json) for element in test.get("bidi_component")
              if element.proto.component_name == "udml_counts")
    assert shown["value"] == epsilon
    sentence = shown["words"][round((epsilon - shown["low"]) / shown["step"])]
    assert sentence.startswith(f"ε = {epsilon:g}: ")
    return str(sentence)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that waits for its preview."""
    monkeypatch.setattr("pages.parts.train.preview.PATIENCE", 60.0)


def test_the_form_does_not_wait_for_the_preview(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    encoding, released = threading.Event(), threading.Event()

    def encode(_dataset: Dataset, _encoder: Encoder, _indices: Any) -> Any:
        encoding.set()
        released.wait(60)
        raise UserError("The images cannot be read.")

    monkeypatch.setattr("pages.parts.train.start_map.features_of_some", encode)
    test = opened("train", dataset="digits", method="rpml", backbone="pixels", split="seen", seed="5",
                  fields="dimension:16")
    assert encoding.wait(60)
    assert "Encoding a sample of the images" in texts(test)
    assert test.slider(key=key_of(test, "alpha")).value == 45.0
    assert [button for button in test.button if button.label == "Start training"]
    released.set()
    monkeypatch.setattr("pages.parts.train.preview.PATIENCE", 60.0)
    assert [error.value for error in test.run().error] == ["The images cannot be read."]
    monkeypatch.undo()
    assert not test.run().error, "it is tried again"


@pytest.mark.slow
@pytest.mark.usefixtures("patient")
def test_the_preview_needs_no_stored_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = {"dataset": "digits", "method": "rpml", "backbone": "pixels", "split": "seen", "seed": "3",
            "fields": "dimension:16"}
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    computed = clusters_at(opened("train", **link), 0.65)
    digits = catalog.load("digits")
    encoder = Encoder(choose_spec("pixels", digits.native_size, digits.gray))
    assert not features_path(digits, encoder.spec).exists(), "only the sample is encoded"
    features_of(digits, encoder)
    st.cache_resource.clear()
    assert clusters_at(opened("train", **link), 0.65) == computed


@pytest.mark.usefixtures("patient")
def test_a_slow_preview_is_computed_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("pages.parts.train.preview.LONGEST_WAIT", 0.1)
    test = opened("train", dataset="digits", method="rpml", backbone="pixels", split="seen", seed="4",
                  fields="dimension:16")
    assert "The preview needs the features of 1,500 images" in texts(test)
    assert "images on the map**" not in texts(test)
    test.button(key="train-preview").click().run()
    assert "needs the features" not in texts(test)
    test.slider(key=key_of(test, "alpha")).set_value(20.0).run()
    assert clusters_at(test, 0.65)


@pytest.mark.usefixtures("patient")
def test_the_preview_follows_alpha_and_epsilon() -> None:
    test = opened("train", dataset="digits", method="rpml", backbone="pixels", split="seen", fields="dimension:16")
    assert not test.exception
    first = clusters_at(test, 0.65)
    test.slider(key=key_of(test, "epsilon")).set_value(0.9).run()
    second = clusters_at(test, 0.9)
    count = [int(line.split(": ")[1].split()[0].replace(",", "")) for line in (first, second)]
    assert count[0] < count[1], "a larger ε gives more clusters"
    test.slider(key=key_of(test, "epsilon")).set_value(1.0).run()
    assert "there is no triplet to train on" in "\n".join(info.value for info in test.info)


@pytest.mark.usefixtures("patient")
def test_a_bound_that_no_triplet_exceeds_is_said_with_what_was_measured() -> None:
    test = opened("train", dataset="digits", method="rpml", backbone="pixels", split="seen", fields="dimension:16")
    assert "Hardly any triplet exceeds α = 45°" in texts(test)
    assert "starts at a random projection: its curve begins low and climbs" in texts(test), "as the run will show"
    assert "the run ends like PCA" in texts(test)
    links = {link.proto.label: link.proto.query_string for link in test.get("page_link")}
    assert links["What was measured"] == "record=rpml-regimes"
    assert "method=whiten" in links["Use the suggested method"], "no example gained here"
    assert test.run().button(key="lab-begin").proto.type == "secondary", "the page says that it does nothing"
    test.slider(key=key_of(test, "alpha")).set_value(20.0).run()
    assert not test.exception
    assert "alpha:20" in test.query_params["fields"], "it can be set by hand"
    assert "ends like PCA" not in texts(test)
    assert test.run().button(key="lab-begin").proto.type == "primary"


@pytest.mark.usefixtures("patient")
def test_a_run_that_starts_at_the_principal_components_is_not_said_to_climb() -> None:
    test = opened("train", dataset="digits", method="rpml", backbone="pixels", split="seen",
                  fields='dimension:16,beginning:"pca"')
    assert "starts at the principal components, has almost nothing to correct, and ends like PCA" in texts(test)
    assert "climbs" not in texts(test)


@pytest.mark.usefixtures("patient")
def test_a_method_with_harder_negatives_is_not_said_to_end_like_pca() -> None:
    test = opened("train", dataset="digits", method="srpml", backbone="pixels", split="seen", fields="dimension:16")
    assert "picks harder negatives in every batch" in texts(test)
    assert "ends like PCA" not in texts(test)


@pytest.mark.usefixtures("patient", "examples")
def test_a_bound_beyond_all_triplets_offers_the_angle_of_the_example_that_judges_support(
        monkeypatch: pytest.MonkeyPatch) -> None:
    test = opened("train", dataset="digits", method="rpml")
    assert "α = 25° as in the example, which reached 60.5 % of the whole group found" in texts(test)
    slider = next(slider for slider in test.slider if slider.key.endswith("-alpha"))
    slider.set_value(32.0).run()
    assert "Training corrects fewer triplets than in the example. With α = 25° the example reached" in texts(test)
    next(slider for slider in test.slider if slider.key.endswith("-alpha")).set_value(53.0).run()
    assert "Hardly any triplet exceeds α = 53°" in texts(test)
    assert not [link for link in test.get("page_link") if link.proto.label == "Use the suggested method"]
    assert "Judges without labels see worse first results, no clear difference in whole groups." in texts(test)
    assert "train-set-alpha" not in [button.key for button in test.button], "the judges do not support it"
    monkeypatch.setattr("udml_core.work.jobs.is_supported", lambda _example: True)
    test.run()
    button = test.button(key="train-set-alpha")
    assert button.label == "Set α to 25°"
    button.click().run()
    assert not test.exception
    assert next(slider for slider in test.slider if slider.key.endswith("-alpha")).value == 25
    assert "α = 25° as in the example" in texts(test)


@pytest.mark.usefixtures("patient")
def test_a_method_that_stays_at_pca_on_fixed_features_says_so_before_the_start() -> None:
    link = {"dataset": "digits", "method": "plm", "split": "seen"}
    assert "Expect next to no gain" in texts(opened("train", backbone="pixels", fields="dimension:4", **link))
    assert "Expect next to no gain" not in texts(opened("train", fields="dimension:4,trains:all", **link))


def test_the_record_shows_the_harm_of_smaller_bounds_that_the_page_states() -> None:
    record = json.loads((FOLDER / "rpml-regimes.json").read_text(encoding="utf-8"))["datasets"]
    lost = [value for title, table in record.items() if "held-out training classes" in title and "Digits" not in title
            for row in table["rows"].values() for value in row.values()]
    assert max(lost) < 0
    assert round(min(lost)) == -24


@pytest.fixture
def unlabeled(tmp_path: Path) -> str:
    """A folder of images without classes that a run has used, as the data set's name."""
    folder = str(write_digits(tmp_path / "photos", 60, by_class=False))
    request = RunRequest.make({"dataset": folder, "method": "frozen", "backbone": "pixels"})
    create_run(jobs.plan(request, catalog.load(folder)), runs_folder())
    return folder


def test_train_opens_with_the_method_that_the_benchmark_supports(unlabeled: str, submitted: list[Spec]) -> None:
    test = opened("train", dataset=unlabeled)
    assert not test.exception
    assert test.query_params["method"] == ["whiten"] or test.query_params["method"] == "whiten"
    assert record_words("whiten") in texts(test)
    assert "MAP@R should rise" not in texts(test)
    start(test)
    assert submitted[0].method == "whiten"
    for link in ({}, {"method": "no-such-method"}):
        assert opened("train", dataset="digits", **link).query_params["method"] in ("whiten", ["whiten"])


def test_a_promise_is_replaced_by_the_record_where_there_are_no_labels(unlabeled: str) -> None:
    shown = texts(opened("train", dataset=unlabeled, method="pca"))
    assert record_words("pca") in shown
    assert "whole groups" not in shown.replace(record_words("pca"), ""), "which the card promises"
    shown = texts(opened("train", dataset="digits", method="pca", backbone="pixels"))
    assert record_words("pca") not in shown
    assert "whole groups" in shown


def test_methods_that_need_labels_are_marked_where_there_are_none(
        unlabeled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path))  # another test may have assigned labels to the same images
    dataset = catalog.load(unlabeled)
    marks = {method.card.supervision: MARKS[method.card.supervision] if lacks_labels(method, dataset) else ""
             for method in METHODS}
    assert marks == {"none": "", "few": "needs labels", "pairs": "needs pairs", "all": "needs labels"}
    assert not any(lacks_labels(method, catalog.load("digits")) for method in METHODS)
    reasons = {card["name"]: card["reason"] for group in card_groups(
        "whiten", SUGGESTED, lambda method: lacking(method, dataset) if lacks_labels(method, dataset) else "")
               for card in group["cards"]}
    assert reasons["nca"] == "Needs the class of every image; these images have none."
    assert "Assign labels" in reasons["ssdml"]
    assert reasons["nml"] == reasons["rpml"] == "", "pairs can be given beside the card"


def test_every_method_has_one_card_with_a_short_line_and_the_suggested_method_comes_first() -> None:
    groups = card_groups("whiten", SUGGESTED, lambda _method: "")
    names = [card["name"] for group in groups for card in group["cards"]]
    assert names[0] == "whiten"
    assert sorted(names) == sorted(method.card.name for method in METHODS)
    assert set(LINES) == set(names)
    assert max(len(line_of(method)) for method in METHODS) <= 52
    marks = {card["name"]: card["mark"] for group in groups for card in group["cards"]}
    assert (marks["rpml"], marks["nml"], marks["nca"]) == ("", "needs pairs", "needs labels")


@pytest.mark.parametrize(("method", "words"), [
    ("nca", "learns from the class of every training image"), ("ssdml", "Assign labels to images of two classes"),
    ("nml", "There are no labeled pairs of these images yet")])
def test_a_method_without_its_labels_says_what_to_do(method: str, words: str, unlabeled: str) -> None:
    test = opened("train", dataset=unlabeled, method=method)
    assert not test.exception
    assert not test.error
    assert words in texts(test)
    assert "Start training" not in [button.label for button in test.button]
    labels = [link.proto.label for link in test.get("page_link")]
    assert ("Mark pairs" if method == "nml" else "Assign labels") in labels


def test_assigned_labels_of_two_classes_suffice_for_methods_with_few_labels(unlabeled: str) -> None:
    dataset = catalog.load(unlabeled)
    assign(dataset, range(4), "a")
    assert lacks_labels(find_method("ssdml"), dataset)
    assign(dataset, range(4, 8), "b")
    assert not lacks_labels(find_method("ssdml"), dataset)
    test = opened("train", dataset=unlabeled, method="ssdml", backbone="pixels")
    assert "8 images have an assigned label, in 2 classes" in texts(test)
    assert "Assign labels to images of two classes" not in texts(test)


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples that come with the app; the preview is not what these tests are about."""
    monkeypatch.setenv("UDML_EXAMPLES", "1")
    monkeypatch.setattr("pages.parts.train.preview.show_preview", lambda *_: None)


@pytest.mark.usefixtures("examples")
def test_a_first_visit_begins_with_the_settings_of_the_example(submitted: list[Spec],
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages.parts.shell.run_picker._folder_ahead", lambda _: "")  # other tests open folders
    test = opened("train")
    assert not test.exception
    assert "Settings of the example RPML on Digits" in texts(test)
    start(test)
    example = next(run for run in example_runs() if run.spec().method == "rpml").spec()
    same = {"created", "version", "versions"}
    assert submitted[0].model_dump(exclude=same) == example.model_dump(exclude=same)


def spec_of_example(method: str) -> Spec:
    return next(run.spec() for run in example_runs() if run.spec().method == method)


@pytest.mark.usefixtures("examples")
@pytest.mark.parametrize(("dataset", "method"), [("emoji", "isif"), ("fashion-mini", "plm")])
def test_a_method_brings_the_fields_of_its_example(dataset: str, method: str, submitted: list[Spec]) -> None:
    test = opened("train", dataset=dataset, method=method)
    start(test)
    assert (submitted[0].method, submitted[0].fields) == (method, spec_of_example(method).fields)


@pytest.mark.usefixtures("examples")
@pytest.mark.parametrize(("dataset", "expected"), [("digits", "rpml"), ("emoji", "whiten"), ("fashion-mini", "whiten")])
def test_only_an_example_above_pca_is_suggested_and_the_suggestion_stays(
        dataset: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    suggested = []
    monkeypatch.setattr("pages.views.train.choose_method", lambda first, *rest: suggested.append(first) or (
        choose_method(first, *rest)))
    test = opened("train", dataset=dataset)
    test.run()
    test.selectbox(key="preset").select("default").run()
    assert not test.exception
    assert suggested == [expected] * len(suggested), "the values that the page wrote to the address change nothing"
    assert len(suggested) > 2


@pytest.mark.usefixtures("examples")
def test_a_reason_stands_beside_the_example_s_angle_alone() -> None:
    example = next(run for run in example_runs() if run.spec().method == "rpml")
    spec = example.spec()
    assert tried_alpha(spec, example, "key") == TriedAlpha(
        25.0, "60.5 % of the whole group found, where PCA of the same width has 51.8 %", "key", is_supported=False,
        verdict="Judges without labels see worse first results, no clear difference in whole groups.")
    assert tried_alpha(spec.model_copy(update={"method": "srpml"}), example, "key").value is None
    assert tried_alpha(spec, None, "key").value is None
    lost = next(run for run in example_runs() if run.spec().method == "plm")
    assert jobs.proof_of(lost) == "", "below PCA"


@pytest.mark.usefixtures("examples")
@pytest.mark.parametrize(("verdicts", "proof"), [
    (("cannot tell", "better"), "no clear difference in first results, better whole groups"),
    (("better", "cannot tell"), "better first results, no clear difference in whole groups"),
    (("worse", "better"), ""), (("cannot tell", "cannot tell"), ""), (None, "")])
def test_without_labels_the_example_s_angle_is_proved_by_the_verdict_alone(
        verdicts: Any, proof: str, monkeypatch: pytest.MonkeyPatch) -> None:
    example = next(run for run in example_runs() if run.spec().method == "rpml")
    of = None if verdicts is None else SimpleNamespace(verdicts=lambda _frame: Verdicts(*verdicts))
    monkeypatch.setitem(jobs.is_supported.__globals__, "opinion_of", lambda _run: of)
    tried = tried_alpha(example.spec(), example, "key", is_labeled=False)
    assert (tried.value, tried.proof, tried.is_supported) == (25.0 if proof else None, proof, bool(proof))
    labeled = tried_alpha(example.spec(), example, "key")
    assert (labeled.value, labeled.is_supported) == (25.0, bool(proof))


@pytest.mark.usefixtures("examples")
def test_another_method_takes_backbone_split_and_width_of_the_example(submitted: list[Spec]) -> None:
    test = opened("train", dataset="digits", method="pca")
    assert "Backbone, split and dimension of the example RPML on Digits" in texts(test)
    start(test)
    assert (submitted[0].backbone, submitted[0].split) == ("pixels", "seen")
    assert submitted[0].fields == find_method("pca").make({"dimension": 8}).model_dump()


@pytest.mark.usefixtures("examples")
def test_one_click_takes_the_default_values_and_a_second_visit_keeps_them(submitted: list[Spec]) -> None:
    test = opened("train", dataset="digits")
    test.button(key="train-defaults").click().run()
    assert not test.exception
    assert "of the example" not in texts(test)
    assert dict(test.query_params)["preset"] == "default"
    test.selectbox(key="pooling").select("rmac").run()
    for name in list(test.query_params):
        del test.query_params[name]
    switched(test, "sweeps")
    switched(test, "train")
    start(test)
    assert (submitted[0].split, submitted[0].pooling, submitted[0].fields["alpha"]) == ("zero-shot", "rmac", 45.0)
    switched(test, "train")
    test.selectbox(key="preset").select("example").run()
    assert not test.exception
    start(test)
    assert (submitted[1].split, submitted[1].pooling) == ("seen", "mean")
    assert submitted[1].fields == spec_of_example("rpml").fields


@pytest.mark.usefixtures("examples")
def test_lab_shows_the_result_of_its_example_until_a_run_has_one() -> None:
    example = jobs.find_example(catalog.load("digits"), runs_folder(), "rpml")
    assert example is not None
    final = (example.evaluation() or {})["final"]
    test = opened("train", dataset="digits", method="rpml")
    assert "The example to beat:" in texts(test)
    (bars,) = [html.proto.body for html in test.get("html") if 'class="result-bars"' in html.proto.body]
    assert all(f"{final[measure]:.1f}\N{NO-BREAK SPACE}%" in bars for measure in ("map@r", "recall@1"))
    assert "The measures of the run appear here." in texts(opened("train", dataset="digits", method="pca"))


@pytest.mark.usefixtures("submitted")
def test_a_run_that_the_user_has_trained_is_named_until_a_setting_changes() -> None:
    start(opened("train", dataset="digits", method="pca"))
    (run,) = list_runs(runs_folder())
    test = opened("train", dataset="digits", method="pca")
    assert "This run exists already" not in texts(test), "it has not ended"
    run.write_status(Status(state="done"))
    test = opened("train", dataset="digits", method="pca")
    assert "**This run exists already**: PCA on Digits. Training it again gives the same." in texts(test)
    assert test.button(key="lab-begin").proto.type == "secondary"
    test.slider(key=key_of(test, "dimension")).set_value(8).run()
    assert "This run exists already" not in texts(test)
    test = opened("train", dataset="digits", method="nce")
    assert "**Your last training**: PCA on Digits." in texts(test)
    assert "Of your last training, PCA on Digits:" in texts(test)
    (link,) = [link for link in test.get("page_link") if link.proto.label == "Show it"]
    assert f"live={run.id}" in link.proto.query_string, "Lab finds it again in a new session"


@pytest.mark.parametrize(("gain", "preset"), [(0.03, "default"), (0.01, "race")])
def test_lab_begins_with_the_settings_of_a_race_only_if_the_race_advises_the_training(gain: float, preset: str) -> None:
    """A race gives whitening a gain, and a training 0.02."""
    frozen = worked(runs_folder(), method="frozen", split="all")
    run = worked(runs_folder(), method="pca", split="all", select="last", fields={"dimension": 4})
    white, trained = (comparison("better", "better", size=size) for size in (gain, 0.02))
    finished(frozen, [Outcome(name="Whitening", setup=Setup(backbone="pixels", recipe="whiten"), kept=True,
                              against_best=white, against_start=white, run=frozen.id),
                      Outcome(name="PCA", setup=Setup(backbone="pixels", method="pca"), against_best=trained,
                              against_start=trained, run=run.id)])
    test = opened("train", dataset="digits", method="pca")
    assert values_of(test)["preset"] == preset
    assert ("This run exists already" in texts(test)) == (preset == "race")


def test_a_run_that_a_link_opened_is_shown_again_after_a_visit_of_another_page() -> None:
    run = worked(runs_folder(), method="pca", fields={"dimension": 4})
    test = again(opened("train", dataset="digits", method="pca", live=run.id))
    assert test.query_params["live"] in (run.id, [run.id])


@pytest.mark.usefixtures("examples")
def test_the_method_that_won_a_race_begins_with_its_settings_and_says_that_this_run_exists(
        submitted: list[Spec]) -> None:
    frozen = worked(runs_folder(), method="frozen", split="all")
    winner = worked(runs_folder(), method="pca", split="all", select="last", fields={"dimension": 4})
    of = comparison("better", "better")
    visited, chosen = opened("train", dataset="digits"), opened("train", dataset="digits", method="nce")
    finished(frozen, [Outcome(name="PCA", setup=Setup(backbone="pixels", method="pca"), kept=True, against_best=of,
                              against_start=of, run=winner.id)])
    test = opened("train", dataset="digits")
    assert not test.exception
    assert values_of(test)["preset"] == "race", "before the example"
    assert "This run exists already" in texts(test)
    assert [test.button(key=key).proto.type for key in ("lab-existing", "lab-begin")] == ["primary", "secondary"]
    assert "pca" in again(visited).query_params["method"], "the suggestion of the last visit is no choice"
    assert "nce" in again(chosen).query_params["method"]
    start(test)
    assert submitted[0].model_dump(exclude={"created"}) == winner.spec().model_dump(exclude={"created"})
    test = opened("train", dataset="digits")
    test.slider(key=key_of(test, "dimension")).set_value(8).run()
    assert "This run exists already" not in texts(test)
    assert test.button(key="lab-begin").proto.type == "primary"
    test.button(key="train-defaults").click().run()
    assert dict(test.query_params)["preset"] == "default"
    assert "This run exists already" not in texts(test)
    del submitted[:]
    start(opened("train", dataset="digits", method="rpml"))
    assert submitted[0].fields == spec_of_example("rpml").fields, "another method than the race's"
    test = opened("train", dataset="digits")
    test.button(key="lab-existing").click().run()
    assert not test.exception
    assert st.session_state.get("advice-used") is None
    assert test.query_params["run"] in (winner.id, [winner.id])


def test_lab_shows_the_last_run_again_until_the_user_leaves_it() -> None:
    run = worked(runs_folder(), method="pca", split="all", fields={"dimension": 4})
    test = opened("train", dataset="digits", live=run.id)
    test.session_state["lab-live"] = run.id  # as a start on the page leaves it
    assert run.id in again(test).query_params["live"]
    test.button(key="lab-again").click().run()
    assert "live" not in again(test).query_params
    test.session_state["lab-live"] = run.id
    switched(test, "learn").query_params.clear()
    test.query_params.update(dataset="digits", method="nce")
    assert "live" not in switched(test, "train").query_params, "a link decides"


def again(test: AppTest) -> AppTest:
    """Open Lab once more in a session, as the navigation does."""
    switched(test, "learn").query_params.clear()
    return switched(test, "train")


@pytest.mark.usefixtures("examples")
@pytest.mark.parametrize(("link", "expected"), [
    ({"preset": "example", "fields": "alpha:20", "split": "zero-shot"}, ("pixels", "zero-shot", 20.0, 8)),
    ({"fields": "alpha:20,dimension:16", "backbone": "pixels"}, ("pixels", "zero-shot", 20.0, 16)),
    ({"split": "all"}, ("efficientnet-lite0", "all", 45.0, 128))])
def test_values_in_the_address_win_over_the_example(link: dict[str, str], expected: tuple[Any, ...],
                                                    submitted: list[Spec]) -> None:
    test = opened("train", dataset="digits", method="rpml", **link)
    assert not test.error
    start(test)
    (spec,) = submitted
    assert (spec.backbone, spec.split, spec.fields["alpha"], spec.fields["dimension"]) == expected


@pytest.mark.usefixtures("examples")
def test_a_changed_option_of_the_example_is_kept_in_the_address() -> None:
    test = opened("train", dataset="digits")
    test.selectbox(key="first-split-seen").select("all").run()
    assert dict(test.query_params) | {"preset": "example", "split": "all"} == dict(test.query_params)
    test.selectbox(key="first-split-seen").select("seen").run()
    assert "split" not in test.query_params


@pytest.mark.usefixtures("examples")
def test_a_run_like_another_wins_over_the_example(submitted: list[Spec]) -> None:
    request = RunRequest.make({"dataset": "digits", "method": "rpml", "backbone": "pixels", "split": "all",
                               "fields": {"dimension": 16}})
    run = create_run(jobs.plan(request, catalog.load("digits")), runs_folder())
    start(opened("train", like=run.id))
    assert submitted[0].model_dump(exclude={"created"}) == run.spec().model_dump(exclude={"created"})


@pytest.mark.usefixtures("examples")
def test_hidden_examples_leave_the_default_values() -> None:
    hide_examples(runs_folder())
    test = opened("train", dataset="digits", method="pca")
    assert values_of(test)["preset"] == "default"
    assert "of the example" not in texts(test)


@pytest.mark.usefixtures("examples")
def test_the_page_says_whether_an_example_shares_the_test_images_and_offers_its_split(submitted: list[Spec]) -> None:
    test = opened("train", dataset="digits", method="pca", preset="default", backbone="pixels", fields="dimension:16")
    assert "has other test images" in texts(test)
    test.button(key="train-shared-split").click().run()
    assert not test.exception
    assert "Evaluated on the same 359 test images as the example RPML on Digits" in texts(test)
    assert "differ" not in texts(test).split("so Compare can show")[1]
    assert "train-shared-split" not in [button.key for button in test.button]
    assert test.query_params["split"] == "seen"
    start(test)
    assert submitted[0].split == "seen"


@pytest.mark.usefixtures("examples")
def test_a_changed_split_of_the_example_can_be_taken_back() -> None:
    test = opened("train", dataset="digits", method="pca", split="all", preset="example")
    test.button(key="train-shared-split").click().run()
    assert test.selectbox(key="first-split-seen").value == "seen"
    assert "split" not in test.query_params


def test_without_an_example_only_the_number_of_test_images_is_said() -> None:
    test = opened("train", dataset="digits", method="pca", backbone="pixels", split="seen", fields="dimension:16")
    assert "Evaluated on 359 test images." in texts(test)


def test_another_data_set_drops_what_belonged_to_the_old_one(unlabeled: str) -> None:
    catalog.remember(unlabeled)
    test = opened("train", dataset="digits", method="nca", backbone="pixels", split="seen", size="9", seed="5",
                  preset="default", fields="dimension:16", live="nothing")
    test.number_input(key="seed").set_value(7).run()
    assert test.query_params["seed"] in ("7", ["7"])
    test.selectbox[0].set_value(unlabeled).run()
    assert not test.exception
    query = dict(test.query_params)
    assert query["dataset"] in (unlabeled, [unlabeled])
    assert not {"seed", "split", "size", "fields", "live"} & set(query)
    assert query["method"] not in ("nca", ["nca"]), "its labels are missing here"
    assert test.number_input(key="seed").value == 0


def test_a_start_stays_on_the_page_and_shows_the_run_until_the_user_goes_on(submitted: list[Spec]) -> None:
    link = {"dataset": "digits", "method": "pca", "backbone": "pixels", "split": "seen", "fields": "dimension:16"}
    test = start(opened("train", **link))
    (run,) = (run for run in list_runs(runs_folder()) if not run.is_example)
    assert test.query_params["live"] in (run.id, [run.id])
    assert "PCA on Digits" in texts(test)
    assert "The map of the run appears when its start has been measured" in texts(test)
    assert "Stop" in [button.label for button in test.button]
    assert [button.label for button in test.button if button.proto.type == "primary"] == [], "no second run by mistake"
    run.write_status(Status(state="failed", message="The disk is full."))
    test.run()
    assert "The disk is full." in texts(test)
    assert "Resume" in [button.label for button in test.button]
    next(button for button in test.button if button.label == "Change a value and train again").click().run()
    assert not test.exception
    assert "live" not in test.query_params
    assert "Stop" not in [button.label for button in test.button]
    assert opened("train", live="no-such-run", **link).query_params.get("live") is None


def test_another_method_ends_the_view_of_an_ended_run_and_not_of_a_run_that_trains(
        submitted: list[Spec], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pages.parts.train.method_choice.method_cards", lambda *args: st.button(
        "Pick RPML", on_click=args[-1], args=("rpml",)))

    def pick(test: AppTest) -> AppTest:
        return next(button for button in test.button if button.label == "Pick RPML").click().run()

    link = {"dataset": "digits", "method": "pca", "backbone": "pixels", "split": "seen", "fields": "dimension:16"}
    test = start(opened("train", **link))
    said = "This is a run of PCA. The choices on the left are for the next run."
    assert said not in texts(test)
    pick(test)
    assert "PCA on Digits" in texts(test), "it trains, and is watched"
    assert said in texts(test)
    (run,) = (run for run in list_runs(runs_folder()) if not run.is_example)
    run.write_status(Status(state="failed", message="The disk is full."))
    test.query_params["method"] = "pca"
    test.run()
    assert "The disk is full." in texts(test)
    pick(test)
    assert not test.exception
    assert test.query_params["method"] in ("rpml", ["rpml"])
    assert "live" not in test.query_params
    assert "The disk is full." not in texts(test), "its measures are not of what is chosen now"


def test_a_run_that_trains_is_shown_again_on_its_own_data_set_only(submitted: list[Spec]) -> None:
    test = start(opened("train", dataset="digits", method="pca", backbone="pixels", split="seen",
                        fields="dimension:16"))
    run_id = test.query_params["live"]
    switched(test, "home")
    for name in list(test.query_params):
        del test.query_params[name]
    switched(test, "train")
    assert test.query_params["live"] == run_id
    for name in list(test.query_params):
        del test.query_params[name]
    test.query_params.update({"dataset": "fashion-mini", "method": "pca", "backbone": "pixels"})
    switched(test, "train")
    assert "live" not in test.query_params


def test_a_curve_that_begins_below_the_frozen_features_says_why(tmp_path: Path) -> None:
    random = worked(tmp_path, fields={"beginning": "random", "dimension": 8})
    below, above = [{"epoch": 0, "gain": 0.2}, {"epoch": 1, "gain": 0.6}], [{"epoch": 0, "gain": 0.5}]
    words = measures._beginning_words(random, below, "gain", {"raw pixels": 0.4, "PCA": 0.9})
    assert words == ("Begins below raw pixels: epoch 0 is before training, when a new layer turns each image's "
                     "features into 8 random mixtures.")
    assert measures._beginning_words(random, above, "gain", {"raw pixels": 0.4, "PCA": 0.9}) == ""
    assert measures._beginning_words(random, below, "gain", {"PCA": 0.9}) == "", "what is not drawn is not named"
    opinions = [{"epoch": 0, "second opinion": -0.1}, {"epoch": 1, "second opinion": 0.1}]
    assert measures._beginning_words(random, opinions, "second opinion", {}) == words, "a gain over these features"
    assert measures._beginning_words(random, opinions[1:], "second opinion", {}) == ""
    fitted = worked(tmp_path, fields={"beginning": "pca", "dimension": 8})
    assert measures._beginning_words(fitted, below, "gain", {"raw pixels": 0.4}) == ""


@pytest.mark.parametrize(("after", "frozen", "pca", "kind", "place"), [
    (60.0, 52.7, 45.1, "own", " above raw pixels and PCA"), (52.7, 52.7, None, "own level", " level with raw pixels"),
    (47.2, 52.7, 45.1, "own below", " below raw pixels but above PCA"), (44.0, None, 45.1, "own below", "")])
def test_the_bar_of_a_result_below_a_baseline_has_another_color_and_its_name_says_where_it_ends(
        after: float, frozen: float | None, pca: float | None, kind: str, place: str) -> None:
    bars = bars_of("RPML", "MAP@R", Standing(None, after, frozen, pca), "raw pixels", images=100_000)
    assert f'<div class="result-bar {kind}"><span>RPML</span><b>{after:.1f}\N{NO-BREAK SPACE}%</b>' in bars
    assert f"<b>MAP@R</b>{place}</div>" in bars


def test_values_that_do_not_fit_leave_the_images_in_the_middle() -> None:
    test = opened("train", dataset="digits", method="rpml", settings="default", fields="dimension:100",
                  backbone="pixels")
    assert "These values do not fit" in texts(test)
    assert "Images of the data set" in str([element.proto for element in test.get("bidi_component")])


@pytest.mark.usefixtures("examples")
def test_changed_values_say_so_and_one_click_goes_back_to_the_example() -> None:
    test = opened("train", dataset="digits", method="rpml")
    assert "As in the example" in test.selectbox(key="preset").options
    assert "Quick, about a minute" not in test.selectbox(key="preset").options, "the example's result is known"
    alpha_of(test).set_value(53.0).run()
    test.selectbox(key="first-split-seen").select("all").run()
    box = test.selectbox(key="preset")
    assert "Changed" in box.options
    assert "As in the example" not in box.options
    back = test.button(key="train-back")
    assert (back.help, back.disabled) == ("Back to the example's values.", False)
    back.click().run()
    assert not test.exception
    assert alpha_of(test).value == 25
    assert test.selectbox(key="first-split-seen").value == "seen"
    assert "As in the example" in test.selectbox(key="preset").options
    assert test.button(key="train-back").disabled, "it keeps its place, so that the sliders stay under the pointer"


@pytest.mark.usefixtures("examples")
def test_quick_settings_are_offered_for_a_method_without_an_example() -> None:
    options = opened("train", dataset="digits", method="srpml").selectbox(key="preset").options
    assert "Quick, about a minute" in options


def alpha_of(test: AppTest) -> Any:
    return next(slider for slider in test.slider if slider.label.startswith("Largest half angle"))


@pytest.mark.usefixtures("patient")
def test_the_preview_counts_the_images_that_the_map_shows() -> None:
    test = opened("train", dataset="digits", method="rpml", backbone="pixels", split="seen", preset="default",
                  fields="dimension:4")
    assert "**Clusters of the 1,000 images on the map**" in [element.value for element in test.markdown]
    counts = np.array([3, -1, 3, 5, -1, -1])
    assert cluster_counts(counts) == (2, 3, 2)
    assert cluster_counts(np.array([-1])) == (0, 1, 0)
    assert count_words(counts, 0.4) == "ε = 0.4: 2 clusters, 3 images alone; 2 images in the largest cluster."


def test_a_result_names_its_images_and_its_numbers() -> None:
    seen = jobs.plan(RunRequest.make({"dataset": "digits", "method": "pca", "backbone": "pixels", "split": "seen",
                                      "fields": {"dimension": 4}}), catalog.load("digits"))
    assert protocol_of({"final": {"images": 898}}, seen) == (
        "898 test images of the classes that it trained on, by 4 numbers each")
    unseen = seen.model_copy(update={"split": "zero-shot", "fields": {}})
    assert protocol_of({}, unseen) == "Test images of classes that it never trained on"


def test_a_second_encoder_is_added_by_a_plain_control(submitted: list[Spec]) -> None:
    test = opened("train", dataset="digits", method="pca", backbone="pixels", size="8", split="seen",
                  fields="dimension:9", whitening="each")
    assert "whitening" not in values_of(test), "a single encoder has nothing to join"
    assert "whitening" not in test.query_params
    test.selectbox(key=SECOND).select("cnn").run()
    assert not test.exception
    assert not test.error
    assert test.query_params["backbone"] == "pixels+cnn"
    test.selectbox(key="whitening").select("each").run()
    start(test)
    (spec,) = submitted
    assert (spec.backbone, spec.encoder.whitening) == ("pixels+cnn", "each")
    assert [part.backbone for part in spec.encoder.parts] == ["pixels", "cnn"]


def test_a_link_to_several_encoders_fills_both_boxes() -> None:
    test = opened("train", dataset="digits", method="pca", backbone="pixels+cnn:0.5", size="8", split="seen",
                  fields="dimension:9")
    assert not test.error
    assert (test.selectbox(key="backbone").value, test.selectbox(key=SECOND).value) == ("pixels", "cnn:0.5")
    test.selectbox(key=SECOND).select("none").run()
    assert test.query_params["backbone"] == "pixels"
    test = opened("train", dataset="digits", method="pca", backbone="pixels+pixels")
    assert "stand beside the others once" in test.error[0].value
