"""The campaign's archives of very many tiny files, with fewer files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.hold_fast.tiny_files import try_tiny


@pytest.mark.parametrize("seed", range(3))
def test_an_archive_of_tiny_files_is_read_or_refused(seed: int, tmp_path: Path) -> None:
    assert try_tiny(np.random.default_rng(seed), tmp_path, files=400) is None
