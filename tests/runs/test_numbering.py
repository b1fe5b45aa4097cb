"""Groups keep their numbers when images are added to a folder, or excluded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.running import worked, write_digits
from udml_core.base.errors import UserError
from udml_core.data.given.exclusions import exclude
from udml_core.exploration import grouping as grouping_module
from udml_core.exploration.grouping import MOST_MATCHED, keep_numbers
from udml_core.runs import Run
from udml_core.runs.analyses import plan_analysis
from udml_core.runs.analyses.kinds.groups import Grouping
from udml_core.runs.search import Retrieval
from udml_core.runs.search.naming import grouping_of
from udml_core.runs.search.numbering import Forming, earlier_runs, numbered_groups
from udml_core.work.workers import analyse

COUNT = 8
BY_COUNT = Forming(COUNT)


@pytest.mark.parametrize(("groups", "earlier", "numbers"), [
    ([0, 0, 0, 1, 1], [1, 1, -1, 0, 0], [1, 1, 1, 0, 0]),
    ([0, 0, 0, 1, 1, 2], [2, 2, -1, -1, -1, 0], [2, 2, 2, 1, 1, 0]),
    ([0, 0, 1, 1, 2], [0, 0, 0, 0, 1], [0, 0, 2, 2, 1]),
    ([0, 1], [-1, -1], [0, 1]), ([0, 0, 1], [5, 5, 1], [5, 5, 1])])
def test_a_group_has_the_number_of_the_group_that_it_continues(groups: list[int], earlier: list[int],
                                                               numbers: list[int]) -> None:
    kept = keep_numbers(np.array(groups), np.array(earlier))
    assert kept.tolist() == numbers


@pytest.mark.parametrize("most", [0, MOST_MATCHED])
def test_thousands_of_groups_are_numbered_as_the_groups_that_they_continue(most: int, monkeypatch: pytest.MonkeyPatch
                                                                           ) -> None:
    monkeypatch.setattr(grouping_module, "MOST_MATCHED", most)
    random = np.random.default_rng(0)
    earlier = np.repeat(np.arange(40), 5)
    renamed = random.permutation(40)[earlier]
    moved = random.choice(200, 20, replace=False)
    renamed[moved] = renamed[random.permutation(moved)]
    kept = keep_numbers(renamed, earlier)
    assert (kept == earlier).mean() > 0.85
    assert len(np.unique(kept)) == len(np.unique(renamed)), "no two groups get one number"


def opened(run: Run, frame: str = "final") -> tuple[Retrieval, Grouping]:
    retrieval = Retrieval(run)
    return retrieval, grouping_of(retrieval, frame)


def by_name(run: Run, forming: Forming = BY_COUNT, frame: str = "final") -> dict[str, int]:
    retrieval, grouping = opened(run, frame)
    names = [retrieval.dataset.names[image] for image in grouping.indices]
    return dict(zip(names, numbered_groups(run, forming, opened, frame).groups.tolist(), strict=True))


def test_groups_of_an_epsilon_and_of_a_refinement_keep_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                                     ) -> None:
    folder = write_digits(tmp_path / "digits", 120, by_class=False)
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    by_epsilon, states, refinements = Forming(epsilon=0.9), [], []
    for number in range(3):
        run = worked(tmp_path / "runs", method="frozen", dataset=str(folder), split="all")
        states.append(run)
        if number < 2:
            analyse.keep(run, plan_analysis(kind="graph", scope="all", frames=("final",)), lambda *_: None)
            refinements.append(analyse.keep(run, plan_analysis(kind="refine", scope="all"), lambda *_: None).id)
        if number == 0:
            both = by_name(run, by_epsilon), by_name(run, BY_COUNT, refinements[0])
            smallest = [max(groups, key=lambda name, groups=groups: groups[name]) for groups in both]
        for copy in range(60):  # the smallest groups become the largest
            (folder / f"new {number} {copy}.png").write_bytes((folder / smallest[copy % 2]).read_bytes())
    first, second, third = states
    for forming, frames in ((by_epsilon, ("final", "final")), (BY_COUNT, refinements)):
        before, after = (by_name(run, forming, frame) for run, frame in zip((first, second), frames, strict=True))
        retrieval, grouping = opened(second, frames[1])
        by_size = forming.groups(retrieval, grouping, frames[1])
        plain = dict(zip([retrieval.dataset.names[image] for image in grouping.indices], by_size.tolist(), strict=True))
        kept, unkept = (sum(numbers[name] == group for name, group in before.items()) for numbers in (after, plain))
        assert kept > 0.55 * len(before)
        assert kept > unkept, "by size, the group that grew would push others to the next number"
    found = numbered_groups(second, BY_COUNT, opened, refinements[1])
    assert (found.known, found.unknown, found.are_new) == (1, 0, False)
    third_refined = analyse.keep(third, plan_analysis(kind="refine", scope="all", recipe="average:k=3"),
                                 lambda *_: None).id
    new = numbered_groups(third, BY_COUNT, opened, third_refined)
    assert new.are_new, "no earlier state has this refinement, and the page says so"
    sizes = np.bincount(new.groups).tolist()
    assert sizes == sorted(sizes, reverse=True)
    with pytest.raises(UserError, match="no neighbor graph"):
        numbered_groups(third, by_epsilon, opened)


def test_numbers_stay_when_a_folder_grows_and_images_are_excluded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                                  ) -> None:
    folder = write_digits(tmp_path / "digits")
    monkeypatch.setenv("UDML_CACHE", str(tmp_path / "cache"))
    first = worked(tmp_path / "runs", method="frozen", dataset=str(folder), split="all")
    before = by_name(first)
    sizes = np.bincount(list(before.values()))
    assert sorted(sizes, reverse=True) == sizes.tolist(), "the first state is numbered by size"
    smallest = [name for name, group in before.items() if group == COUNT - 1]
    content = (folder / smallest[0]).read_bytes()
    for number in range(30):  # the smallest group becomes the largest
        (folder / smallest[0]).with_name(f"new {number}.png").write_bytes(content)
    second = worked(tmp_path / "runs", method="frozen", dataset=str(folder), split="all")
    assert second.spec().fingerprint != first.spec().fingerprint
    assert [run.id for run in earlier_runs(second)] == [first.id, second.id]
    after = by_name(second)
    assert set(after.values()) == set(range(COUNT))
    assert after[smallest[0]] == COUNT - 1, "not number 1, although it is the largest now"
    stay = [name for name in before if before[name] == after[name]]
    assert len(stay) > 0.8 * len(before)
    exclude(second.dataset(), range(4))
    third = worked(tmp_path / "runs", method="frozen", dataset=str(folder), split="all")
    assert [run.id for run in earlier_runs(third)] == [first.id, second.id, third.id]
    assert by_name(third)[smallest[0]] == COUNT - 1
    assert numbered_groups(third, BY_COUNT, lambda run, _frame: opened(run) if run.id == third.id else None
                           ).groups.max() == COUNT - 1
