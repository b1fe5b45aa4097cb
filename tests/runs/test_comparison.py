"""Settings that differ, seeds, and their spread."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from tests.running import spec
from udml_core.runs import ExclusionList, create_run
from udml_core.runs.run_comparison import differing_settings, seed_groups, settings_of, share_images, spread


def test_only_differing_settings_are_listed_also_those_of_one_method(tmp_path: Path) -> None:
    runs = [create_run(spec(seed=1), tmp_path / "runs"), create_run(spec(method="pca", fields={"dimension": 16}),
                                                                    tmp_path / "runs")]
    differing = differing_settings([settings_of(run) for run in runs])
    assert differing["method"] == ["rpml", "pca"]
    assert differing["seed"] == [1, 0]
    assert differing["alpha"] == [45.0, None]
    assert not {"dimension", "dataset", "split", "created", "versions"} & set(differing)


def test_the_path_of_the_weights_is_no_setting(tmp_path: Path) -> None:
    runs = [create_run(spec().model_copy(update={"seed": seed, "weights": f"/{seed}.safetensors"}), tmp_path / "runs")
            for seed in (1, 2)]
    assert seed_groups([settings_of(run) for run in runs]) == [[0, 1]]


def test_runs_share_images_unless_data_set_split_or_exclusions_differ(tmp_path: Path) -> None:
    own, excluded = spec(), {"excluded": ExclusionList.of(["0"])}
    alike = create_run(own, tmp_path), create_run(spec(seed=3), tmp_path)
    assert share_images(alike)
    for update in (excluded, {"split": "all"}, {"fingerprint": "of other images"}):
        assert not share_images([*alike, create_run(own.model_copy(update=update), tmp_path)])
    same = own.model_copy(update=excluded)
    assert share_images([create_run(same, tmp_path), create_run(same, tmp_path)])


def test_runs_that_differ_only_in_the_seed_form_a_group() -> None:
    rows = [{"method": "rpml", "alpha": 45, "seed": 0}, {"method": "rpml", "alpha": 30, "seed": 0},
            {"method": "rpml", "alpha": 45, "seed": 2}, {"method": "pca", "seed": 0}]
    assert seed_groups(rows) == [[0, 2], [1], [3]]
    assert seed_groups([]) == []


def test_a_repetition_with_the_same_seed_is_no_further_seed() -> None:
    rows = [{"alpha": 1, "seed": seed} for seed in (0, 1, 0, 2)]
    assert seed_groups(rows) == [[0, 1, 3], [2]]


def test_the_spread_is_the_samples_standard_deviation() -> None:
    values = [31.0, 33.5, 30.25]
    result = spread([31.0, None, 33.5, 30.25])
    assert result is not None
    assert result.mean == pytest.approx(statistics.mean(values))
    assert result.deviation == pytest.approx(statistics.stdev(values))
    single = spread([31.0])
    assert single is not None
    assert (single.mean, single.deviation) == (31.0, None)
    assert spread([None]) is None
