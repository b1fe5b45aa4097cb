"""An upload that stops half-way leaves neither memory nor files at a real server."""

from __future__ import annotations

import sys

import pytest

from experiments.hold_fast.attempt import attempt_once
from experiments.hold_fast.uploads import PART, STOPS


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_upload_that_stops_half_way_leaves_nothing() -> None:
    outcome = attempt_once(PART, 1)
    assert outcome.broken is None
    assert outcome.events == STOPS
