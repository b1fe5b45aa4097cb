"""The second opinion on 60,000 images: preparing a judge, and all that it says of two embeddings."""

from __future__ import annotations

import time

import numpy as np
import pytest

from udml_core.numerics.changed_groups import changed_groups
from udml_core.numerics.changed_results import changed_results
from udml_core.numerics.neighbors import nearest
from udml_core.numerics.second_opinion import QUERIES, Judge, evenly_spaced, judge_rankings

COUNT, CLASSES, SECONDS = 60_000, 120, 10.0

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]


def test_a_second_opinion_on_60000_images_takes_ten_seconds() -> None:
    random = np.random.default_rng(0)
    content = np.repeat(random.normal(size=(CLASSES, 32)), COUNT // CLASSES, axis=0)
    content += 0.7 * random.normal(size=content.shape)
    before, after, features = (
        (content @ random.normal(size=(32, width)) + random.normal(size=(COUNT, width))).astype(np.float32)
        for width in (128, 128, 512))
    Judge.of(features[:1000])  # loads what is loaded once
    began, used = time.perf_counter(), time.process_time()
    judge = Judge.of(features)
    prepared = time.perf_counter() - began
    queries = evenly_spaced(len(judge.images), QUERIES)
    rankings = [nearest(rows[judge.images], judge.group, own=queries)[1] for rows in (before, after)]
    judge_rankings(judge, queries, *rankings)
    opinion = time.perf_counter() - began - prepared
    changed_results(judge, queries, *rankings)
    changed_groups(judge, queries, *rankings)
    total = time.perf_counter() - began
    print(f"\nn={COUNT}, judge of 512 numbers: {prepared:.1f} s, opinion on 128 numbers {opinion:.1f} s, counts "
          f"{total - prepared - opinion:.1f} s; {total:.1f} s, {time.process_time() - used:.1f} s of processor")
    assert total < SECONDS
