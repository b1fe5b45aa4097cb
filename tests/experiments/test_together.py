"""Two servers and the command line on one folder of runs for a minute; the campaign's part `together` takes ten."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.hold_fast import storms

SEED, SECONDS = 5, 60.0


@pytest.mark.slow
def test_two_servers_and_a_command_line_share_a_folder_of_runs(tmp_path: Path) -> None:
    assert storms.serve(np.random.default_rng(SEED), tmp_path / "runs", SECONDS) is None
