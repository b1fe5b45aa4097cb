"""Setup from a checkout with `make setup`, using a stand-in for Python."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAND_IN = """#!/bin/sh
here=$(cd "$(dirname "$0")"; pwd); home=${here%/.venv/bin}
case "$*" in
  *"-m venv"*) mkdir -p .venv/bin; cp "$0" .venv/bin/python; test -f "$home/ensurepip" && touch "$home/pip";;
  *"-m pip"*) test -f "$home/pip";;
esac
"""
"""Creates a virtual environment as on Debian: without pip, and with an error, until python3-venv is installed."""


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_a_setup_that_failed_without_pip_can_be_repeated(tmp_path: Path) -> None:
    for name in ("Makefile", "requirements.txt", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "python").write_text(STAND_IN)
    (tmp_path / "python").chmod(0o755)

    def setup() -> subprocess.CompletedProcess[str]:
        return subprocess.run(["make", "setup", "PYTHON=./python"], cwd=tmp_path, capture_output=True, text=True,
                              check=False)

    assert setup().returncode != 0
    assert (tmp_path / ".venv" / "bin" / "python").exists()
    assert not (tmp_path / ".venv" / "ready").exists()
    (tmp_path / "ensurepip").touch()
    done = setup()
    assert done.returncode == 0
    assert "Installing PyTorch" in done.stdout
    assert "minutes" in done.stdout, "a new user must know how long it takes"
    assert (tmp_path / ".venv" / "ready").exists()
    assert "Installing" not in setup().stdout
