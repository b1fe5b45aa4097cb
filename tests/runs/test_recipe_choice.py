"""The refinement that a run begins with, and the judges that can judge another one at once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.running import worked, write_digits
from tests.runs.test_opinions import BETTER, UNCLEAR, WORSE, keep_opinion
from udml_core.base.files import replace_array
from udml_core.data.catalog import load
from udml_core.data.encoders import choose_spec
from udml_core.data.features import features_path
from udml_core.exploration.race import Race, Setup
from udml_core.numerics.second_opinion import Opinion
from udml_core.results.records import FOLDER
from udml_core.runs import RunRequest, create_run
from udml_core.runs.analyses import create_analysis, plan_analysis
from udml_core.runs.analyses.kinds.advice import Advice
from udml_core.runs.analyses.kinds.opinion import Opinions
from udml_core.runs.opinions import OF_REFINEMENTS, judge_weights
from udml_core.runs.recipe_choice import (
    MILDEST,
    MOST_LOST,
    NARROW,
    RecipeChoice,
    judge_paths,
    recipe_choice,
    request_on,
    stored_opinion_on,
)
from udml_core.work.jobs import plan


def test_a_run_begins_with_the_mildest_recipe_and_then_with_the_preferred_one(tmp_path: Path) -> None:
    run = worked(tmp_path, fields={"dimension": NARROW, "epochs": 1})
    assert (recipe_choice(run).recipe, recipe_choice(run).opinions) == (MILDEST, None)
    assert "not judged yet" in recipe_choice(run).words
    keep_opinion(run, UNCLEAR, BETTER, OF_REFINEMENTS, "whiten+average:k=10,times=2")
    assert recipe_choice(run).recipe == "whiten+average:times=2", "as the address writes it"
    assert "Chosen by SqueezeNet 1.1, without labels: of 1 recipes" in recipe_choice(run).words
    assert recipe_choice(run).words.startswith("**Recommended: ")


def test_a_narrow_run_begins_without_steps_until_it_is_judged(tmp_path: Path) -> None:
    run = worked(tmp_path, fields={"dimension": NARROW - 1, "epochs": 1})
    assert recipe_choice(run).recipe == ""
    assert "No step is on until this run is judged" in recipe_choice(run).words
    keep_opinion(run, UNCLEAR, BETTER, OF_REFINEMENTS, "whiten")
    assert recipe_choice(run).recipe == "whiten"


def test_a_whitened_run_begins_without_steps_until_it_is_judged(tmp_path: Path) -> None:
    assert recipe_choice(worked(tmp_path, method="whiten", fields={})).recipe == ""
    assert recipe_choice(worked(tmp_path, method="frozen", fields={})).recipe == MILDEST


def test_a_run_without_a_better_refinement_begins_without_steps(tmp_path: Path) -> None:
    run = worked(tmp_path)
    keep_opinion(run, WORSE, BETTER, OF_REFINEMENTS, "whiten")
    assert recipe_choice(run).recipe == ""
    assert "Judges recommend no refinement" in recipe_choice(run).words


def test_the_records_support_the_mildest_recipe() -> None:
    changes = []
    for path in FOLDER.glob("refinement-*.json"):
        for title, table in json.loads(path.read_text(encoding="utf-8"))["datasets"].items():
            if title.endswith("no step has seen the test images"):
                rows = table["rows"]
                changes += [rows["Whitening"][name] - rows["Frozen features"][name] for name in ("recall@1", "map@r")]
    assert len(changes) == 14
    assert min(changes) >= -MOST_LOST
    assert max(changes) > 4


def test_a_stored_opinion_is_found_by_the_plain_name_of_its_recipe(tmp_path: Path) -> None:
    run = worked(tmp_path)
    assert stored_opinion_on(run, "whiten") is None
    keep_opinion(run, BETTER, WORSE, OF_REFINEMENTS, "average:k=10,times=2")
    found = stored_opinion_on(run, "average:times=2")
    assert found is not None
    assert found.verdicts("average:times=2") == ("better", "cannot tell"), "nothing speaks against averages"
    assert stored_opinion_on(run, "whiten") is None
    assert stored_opinion_on(run, "") is None
    own = request_on("reduce:dimension=5")
    assert (own.frames, own.recipes) == (("final",), ("reduce:dimension=5",))
    keep_opinion(run, WORSE, WORSE, own, "reduce:dimension=5")
    worse = stored_opinion_on(run, "reduce:dimension=5")
    assert worse is not None
    assert worse.verdicts("reduce:dimension=5") == ("worse", "worse")


def test_judges_are_found_where_their_features_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    run = worked(tmp_path / "runs")
    dataset = run.dataset()
    assert run.spec().backbone == "pixels"
    assert judge_paths(run, dataset) == {}
    for name in ("pixels", "squeezenet"):
        path = features_path(dataset, choose_spec(name, dataset.native_size, dataset.gray))
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_array(path, features_of_noise(len(dataset), len(name)))
        assert set(judge_paths(run, dataset)) == {"pixels": set(), "squeezenet": {"squeezenet"}}[name]
    replace_array(path, 2 * features_of_noise(len(dataset), len("pixels")))
    assert judge_paths(run, dataset) == {}, "pixels under another name"


def features_of_noise(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)


def test_a_judge_counts_as_in_an_opinion_on_the_run_else_as_in_a_race_on_its_images(tmp_path: Path) -> None:
    run = worked(tmp_path)
    own = run.spec().fingerprint
    for fingerprint, weight, counts in (("of other images", 0.7, 1.0), (own, 0.9, 0.9)):
        start = worked(tmp_path, method="frozen", split="all")
        written = start.folder / "spec.json"
        written.write_text(written.read_text().replace(own, fingerprint))
        race = Race(serves="first", budget=2, start=Setup(backbone="pixels"), run=start.id,
                    weights={"squeezenet": weight})
        create_analysis(start, plan_analysis(Advice), state="done", result={"race": np.array(race.model_dump_json())})
        assert judge_weights([run], ["squeezenet"]) == {"squeezenet": counts}, "of its own images alone"
    keep_opinion(run, BETTER, WORSE)
    assert judge_weights([run], ["squeezenet"]) == {"squeezenet": 0.5}
    assert judge_weights([run], ["squeezenet", "other"]) == {"squeezenet": 1.0, "other": 1.0}


def test_pixels_do_not_judge_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    folder = write_digits(tmp_path / "photos", 60, by_class=False)
    run = create_run(plan(RunRequest.make({"dataset": str(folder), "method": "frozen"}), load(str(folder))), tmp_path)
    dataset = run.dataset()
    assert run.spec().backbone != "pixels"
    path = features_path(dataset, choose_spec("pixels", dataset.native_size, dataset.gray))
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_array(path, np.zeros((len(dataset), 4), np.float32))
    assert judge_paths(run, dataset) == {}


def test_the_recommendation_has_the_verdicts_of_its_recipe(tmp_path: Path) -> None:
    opinions = Opinions("final", {"average:k=5": {"squeezenet": Opinion(WORSE, UNCLEAR)},
                                  "whiten+average:k=10,times=2": {"squeezenet": Opinion(UNCLEAR, BETTER)}},
                        {"squeezenet": 1.0}, 30)
    choice = RecipeChoice("whiten+average:times=2", opinions)
    assert choice.recommendation == ("**Recommended: whitening, then averaging with 10 neighbors, twice** (no clear "
                                     "difference in first results, better whole groups).")
    assert RecipeChoice("", opinions).recommendation == RecipeChoice("whiten", None).recommendation == ""
