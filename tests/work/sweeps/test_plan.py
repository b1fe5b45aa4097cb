"""Laws of planning: the size of a grid, reproducible draws, limits, and odd files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from udml_core.base.errors import UserError
from udml_core.work.sweeps import MOST_RUNS, SweepSpec, count_runs, make_sweep, parse_sweep, read_sweep, requests_of
from udml_core.work.sweeps.reading import MOST_BYTES

RANDOM = {"data": "digits", "methods": {"rpml": {"alpha": {"low": 5, "high": 60}, "dimension": [8, 16, 32]}, "nml": {
    "learning_rate": {"low": 1e-4, "high": 0.1, "logarithmic": True}, "dimension": {"low": 4, "high": 64}}},
    "search": "random", "draws": 6}


def sweep(**content: Any) -> SweepSpec:
    return make_sweep({"data": "digits", "methods": "rpml"} | content, "a sweep")


def identities(spec: SweepSpec) -> list[str]:
    """Return each request as text."""
    return [request.model_dump_json() for request in requests_of(spec)]


@given(st.lists(st.floats(1, 89), min_size=1, max_size=4, unique=True),
       st.lists(st.integers(1, 99), min_size=1, max_size=3, unique=True), st.integers(1, 3), st.integers(1, 2))
def test_a_grid_has_every_combination_once(angles: list[float], widths: list[int], seeds: int, sets: int) -> None:
    spec = sweep(data=["digits", "emoji"][:sets], methods={"rpml": {"alpha": angles}, "pca": {}},
                 fields={"dimension": widths}, seeds=seeds)
    requests = requests_of(spec)
    assert len(requests) == (len(angles) + 1) * len(widths) * seeds * sets == count_runs(spec)
    assert len(set(identities(spec))) == len(requests)
    assert {(request.fields["alpha"], request.fields["dimension"], request.seed, request.dataset)
            for request in requests if request.method == "rpml"} == {
        (angle, width, seed, name) for angle in angles for width in widths for seed in range(seeds)
        for name in spec.data}


def test_the_first_seed_of_every_combination_comes_first() -> None:
    requests = requests_of(sweep(fields={"alpha": [15, 30]}, seeds=[7, 3]))
    assert [(request.seed, request.fields["alpha"]) for request in requests] == [(7, 15), (7, 30), (3, 15), (3, 30)]


def test_draws_are_reproducible_and_differ_by_seed() -> None:
    spec = make_sweep(RANDOM, "x")
    assert identities(spec) == identities(make_sweep(json.loads(json.dumps(RANDOM)), "y"))
    assert identities(spec) != identities(make_sweep(RANDOM | {"draw_seed": 1}, "x"))
    assert len(set(identities(spec))) == 12 == count_runs(spec)
    for request in requests_of(spec):
        dimension = request.fields["dimension"]
        assert isinstance(dimension, int)
        assert (dimension in (8, 16, 32) and 5 <= request.fields["alpha"] <= 60) if request.method == "rpml" else (
            4 <= dimension <= 64 and 1e-4 <= request.fields["learning_rate"] <= 0.1)


def test_more_draws_begin_with_the_same_combinations_and_another_method_changes_none() -> None:
    six = identities(make_sweep(RANDOM | {"methods": {"rpml": RANDOM["methods"]["rpml"]}}, "x"))  # type: ignore[index]
    nine = identities(make_sweep(RANDOM | {"draws": 9}, "x"))
    assert nine[:6] == six


def test_a_random_search_of_few_combinations_takes_each_once() -> None:
    spec = sweep(fields={"alpha": [15, 30], "dimension": [8, 16]}, search="random", draws=50)
    assert len(set(identities(spec))) == len(identities(spec)) == 4


def test_a_logarithmic_range_draws_factors_evenly() -> None:
    spec = sweep(methods={"nml": {"learning_rate": {"low": 1e-4, "high": 1.0, "logarithmic": True}}},
                 search="random", draws=400)
    rates = [request.fields["learning_rate"] for request in requests_of(spec)]
    assert 0.4 < sum(rate < 1e-2 for rate in rates) / len(rates) < 0.6


def test_a_sweep_is_stored_as_it_was_read() -> None:
    for content in (RANDOM, {"data": "digits", "methods": "rpml", "options": {"size": [None, 32], "compile": False},
                             "fields": {"alpha": [15, 30.0]}}):
        spec = make_sweep(content, "x")
        stored = SweepSpec.model_validate_json(spec.model_dump_json())
        assert stored == spec
        assert identities(stored) == identities(spec)


def test_yaml_of_a_sweep() -> None:
    spec = parse_sweep("""
        data: [digits, fashion-mini]
        methods:
          rpml: {alpha: [15, 30]}
          nml: {learning_rate: [1e-3, 0.01]}
          pca:
        fields: {dimension: 16}
        options: {backbone: pixels}
        seeds: 2
        budget: 30""", "name of the file")
    assert (spec.name, spec.budget, spec.seeds) == ("name of the file", 30, (0, 1))
    assert spec.methods["nml"]["learning_rate"] == (0.001, 0.01)
    assert count_runs(spec) == (2 + 2 + 1) * 2 * 2
    assert spec.varied == ["alpha", "learning_rate"]


@pytest.mark.parametrize(("text", "words"), [
    ("", "A sweep must be a mapping"),
    ("- 1", "A sweep must be a mapping"),
    ("data: [unclosed", "not valid YAML"),
    ("data: !!python/object/apply:os.system [echo]", "not valid YAML"),
    ("data: &a [digits]\nmethods: *a", "aliases"),
    ("a: &a [x]\nb: &b [*a,*a]", "aliases"),
    ("data: digits\ndata: emoji", "'data' occurs twice"),
    ("data: !!int ''", "not valid YAML"),
    ("data: !!bool maybe", "not valid YAML"),
    ("data: !!map [1]", "not valid YAML"),
    ("data: 2026-99-99", "not valid YAML"),
    ("[" * 5000, "not valid YAML"),
    ("data: \x00", "not valid YAML"),
    ("data: digits\nmethod: rpml", "no entry 'method'"),
    ("data: digits", "'methods' needs a name"),
    ("data: no\nmethods: rpml", "in quotes"),
    ("data: digits\nmethods: rpmll", "rpmll"),
    ("data: digits\nmethods: {1: {}}", "'1'"),
    ("data: digits\nmethods: {rpml: {angle: 3}}", "The method 'rpml' has no entry 'angle'; its entries are: alpha"),
    ("data: digits\nmethods: {rpml: 3}", "must be a mapping"),
    ("data: digits\nmethods: [rpml, pca]\nfields: {alpha: 3}", "no entry 'alpha' of pca"),
    ("data: digits\nmethods: rpml\nfields: {alpha: [[1]]}", "'alpha' needs a value"),
    ("data: digits\nmethods: rpml\nfields: {alpha: []}", "'alpha' needs a value"),
    ("data: digits\nmethods: rpml\nfields: {alpha: 2026-11-23}", "'alpha' needs a value"),
    ("data: digits\nmethods: rpml\nfields: {alpha: {low: 1, high: 2}}", "A grid needs a list of values"),
    ("data: digits\nmethods: rpml\nfields: {alpha: {low: 1}}", "needs low and high"),
    ("data: digits\nmethods: rpml\nfields: {alpha: {low: 2, high: 1}}", "a low end below its high end, got 2 and 1"),
    ("data: digits\nmethods: rpml\nfields: {alpha: {low: .nan, high: 1}}", "a low end below its high end"),
    ("data: digits\nmethods: rpml\nfields: {alpha: {low: 0, high: 1, logarithmic: true}}", "a low end above 0"),
    ("data: digits\nmethods: rpml\noptions: {seed: 3}", "no entry 'seed'"),
    ("data: digits\nmethods: rpml\nseeds: 0", "'seeds' must be a whole number between 1"),
    ("data: digits\nmethods: rpml\nseeds: 1000000000000", "'seeds' must be a whole number"),
    ("data: digits\nmethods: rpml\nseeds: [1, -1]", "'seeds' must be a whole number between 0"),
    ("data: digits\nmethods: rpml\nseeds: true", "'seeds' must be a whole number"),
    ("data: digits\nmethods: rpml\nsearch: bayes", "'search' must be one of 'grid', 'random', got 'bayes'"),
    ("data: digits\nmethods: rpml\nsearch: [grid]", "'search' must be one of"),
    ("data: digits\nmethods: rpml\nsearch: random", "draws: 20"),
    ("data: digits\nmethods: rpml\ndraws: 3", "add search: random"),
    ("data: digits\nmethods: rpml\nsearch: random\ndraws: many", "'draws' must be a whole number"),
    ("data: digits\nmethods: rpml\nbudget: -1", "'budget' must be a number of minutes above 0, got -1"),
    ("data: digits\nmethods: rpml\nbudget: .inf", "'budget' must be"),
    ("data: digits\nmethods: rpml\ncriterion: sample map@r", "'criterion' must be one of 'validation map@r'"),
])
def test_an_odd_file_is_refused_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(UserError) as error:
        parse_sweep(text, "x")
    assert words in str(error.value)
    assert len(str(error.value)) < 1500


def test_ten_thousand_runs_are_refused_before_they_are_listed() -> None:
    fields = {name: list(range(1, 10_001)) for name in ("alpha", "dimension", "epochs", "steps")}
    with pytest.raises(UserError, match=rf"at most {MOST_RUNS:,} are allowed"):
        sweep(fields=fields)
    with pytest.raises(UserError, match="has 1,002 runs"):
        sweep(fields={"alpha": [15, 30, 45]}, seeds=334)
    assert count_runs(sweep(fields={"alpha": [15, 30]}, seeds=500)) == 1000


def test_a_file_is_read_with_limits(tmp_path: Path) -> None:
    path = tmp_path / "angles.yaml"
    for content in (b"data: \xff\xfe\xfa", b"#" * (MOST_BYTES + 1)):
        path.write_bytes(content)
        with pytest.raises(UserError, match="could not be read"):
            read_sweep(path)
    with pytest.raises(UserError, match="could not be read"):
        read_sweep(tmp_path)
    path.write_bytes("\ufeffdata: digits\nmethods: rpml\n".encode())
    assert read_sweep(path).name == "angles"


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
                        st.sampled_from(["data", "methods", "fields", "options", "seeds", "rpml", "alpha", "low",
                                         "high", "search", "draws", "budget", "x"]), inner, max_size=4), max_leaves=12))
def test_any_content_is_a_sweep_or_a_user_error(content: Mapping[str, Any]) -> None:
    try:
        spec = make_sweep(content, "x")
    except UserError:
        return
    assert 0 < count_runs(spec) <= MOST_RUNS
