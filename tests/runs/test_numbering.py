"""Groups keep their numbers when images are added to a folder, or excluded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.running import worked, write_digits
from udml_core.data.given.exclusions import exclude
from udml_core.exploration.grouping import keep_numbers
from udml_core.runs import Run
from udml_core.runs.analyses.kinds.groups import Grouping
from udml_core.runs.search import Retrieval
from udml_core.runs.search.naming import grouping_of
from udml_core.runs.search.numbering import earlier_runs, numbered_groups

COUNT = 8


@pytest.mark.parametrize(("groups", "earlier", "numbers"), [
    ([0, 0, 0, 1, 1], [1, 1, -1, 0, 0], [1, 1, 1, 0, 0]),
    ([0, 0, 0, 1, 1, 2], [2, 2, -1, -1, -1, 0], [2, 2, 2, 1, 1, 0]),
    ([0, 0, 1, 1, 2], [0, 0, 0, 0, 1], [0, 0, 2, 2, 1]),
    ([0, 1], [-1, -1], [0, 1]), ([0, 0, 1], [5, 5, 1], [5, 5, 1])])
def test_a_group_has_the_number_of_the_group_that_it_continues(groups: list[int], earlier: list[int],
                                                               numbers: list[int]) -> None:
    kept = keep_numbers(np.array(groups), np.array(earlier))
    assert kept.tolist() == numbers


def opened(run: Run) -> tuple[Retrieval, Grouping]:
    retrieval = Retrieval(run)
    return retrieval, grouping_of(retrieval)


def by_name(run: Run) -> dict[str, int]:
    retrieval, grouping = opened(run)
    names = [retrieval.dataset.names[image] for image in grouping.indices]
    return dict(zip(names, numbered_groups(run, COUNT, opened).tolist(), strict=True))


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
    assert numbered_groups(third, COUNT, lambda run: opened(run) if run.id == third.id else None).max() == COUNT - 1
