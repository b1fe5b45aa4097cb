"""Orders that show many classes early."""

from __future__ import annotations

import numpy as np

from udml_core.exploration.variety import classes_in_turn


def test_the_first_of_every_class_comes_first_then_the_second() -> None:
    labels = np.array([4, 4, 1, 4, 1, 7])
    assert classes_in_turn(labels).tolist() == [0, 2, 5, 1, 4, 3]
    assert classes_in_turn(np.zeros(0, dtype=np.int64)).tolist() == []
