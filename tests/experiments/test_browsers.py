"""The campaign's part `browsers` with two sessions, whose sliders all move a picture, and then only one of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from experiments.real_server import ROOT, find_browser

SCRIPT = """
import json
import os
from experiments.hold_fast import browsers
from experiments.hold_fast.attempt import attempt_once, shared_folder
from experiments.hold_fast.forked import prepare
from experiments.hold_fast.sockets import Pictures

os.environ |= {"UDML_CACHE": str(shared_folder("cache")), "UDML_RUNS": str(shared_folder("runs"))}
prepare()
browsers.PAGES = ("clusters",)
outcomes = [attempt_once(browsers.PART, seed) for seed in range(3)]

page, seen = next(iter(browsers.pictures.items()))
browsers.pictures[page] = Pictures()  # no message reaches it any more
browsers.pictures[page].sliders = seen.sliders
outcomes += [attempt_once(browsers.PART, seed) for seed in range(3, 6)]
print(json.dumps([[outcome.broken, outcome.figures] for outcome in outcomes]))
"""


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(find_browser() is None, reason="needs Chromium")
def test_a_session_whose_slider_moves_no_picture_breaks_the_part() -> None:
    environment = os.environ | {"HOLD_FAST_SESSIONS": "2", "HOLD_FAST_SLIDERS": "1", "UDML_MAPS": "0",
                                "UDML_EXAMPLES": "0"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, env=environment, capture_output=True, text=True,
                          timeout=400, check=True)
    opened, *moved = json.loads(done.stdout.splitlines()[-1])
    assert "movements that changed a picture" not in opened[1]
    assert [figures["movements that changed a picture"] for _, figures in moved] == [1, 1, 0.5, 0.5, 0.5]
    broken = [words for words, _ in moved]
    assert broken[:3] == [None] * 3, "a single movement without effect is no defect"
    assert "2 of 8 movements of sliders changed no picture, the last at http" in broken[3]
    assert "3 of 10 movements" in broken[4]
