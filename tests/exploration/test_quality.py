"""Quality: each check finds its damage on a photograph, and the scores equal CleanVision's formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageFilter
from sklearn.datasets import load_sample_image

from experiments.blur import facts_of_images, stored
from experiments.messy import damage
from udml_core.data.image_facts import measure
from udml_core.exploration.quality import (
    CHECKS,
    all_poor,
    edge_scores,
    poor_by_check,
    poor_images,
    quality_scores,
    reason_words,
    size_words,
    worst_first,
)

CHINA = Image.fromarray(load_sample_image("china.jpg"))




@pytest.mark.parametrize(("check", "kind"), [("blurry", "blurred"), ("dark", "dark"), ("bright", "bright"),
                                             ("information", "flat")])
def test_each_damage_is_the_worst_of_its_check_and_below_the_limit(check: str, kind: str) -> None:
    parts = [CHINA.crop((100 * column, 200, 100 * column + 100, 300)) for column in range(6)]
    facts = facts_of_images([damage(kind)(parts[0]), *parts])
    everything = np.ones(7, bool)
    assert worst_first(quality_scores(facts, check), everything)[0] == 0
    assert 0 in poor_images(facts, everything, check)
    assert len(poor_images(facts, everything, check, 0.0)) == 0
    everything[0] = False
    assert 0 not in poor_images(facts, everything, check, 1.1)


def test_blur_is_found_at_any_contrast_and_neither_a_blurred_background_nor_one_color_is_blur() -> None:
    part = CHINA.crop((100, 100, 356, 356))
    blurred = part.filter(ImageFilter.GaussianBlur(3))
    bokeh = blurred.copy()
    bokeh.paste(part.crop((90, 90, 140, 140)), (90, 90))
    pale = ImageEnhance.Contrast(blurred).enhance(0.4)
    plain = Image.new("RGB", (256, 256), "teal")
    images = [part, bokeh, ImageEnhance.Contrast(part).enhance(0.4), plain, blurred, pale]
    poor = poor_images(facts_of_images(images), np.ones(6, bool), "blurry")
    assert set(poor.tolist()) == {4, 5}


@pytest.mark.parametrize("deviation", [3, 8, 20])
def test_a_photograph_far_out_of_focus_is_blurred_though_its_compression_is_sharp(deviation: int) -> None:
    part = CHINA.crop((100, 100, 356, 356))
    blurred = stored(part.filter(ImageFilter.GaussianBlur(deviation)))
    poor = poor_images(facts_of_images([part, blurred, stored(part)]), np.ones(3, bool), "blurry")
    assert poor.tolist() == [1]


def test_facts_of_an_earlier_version_are_scored_as_before() -> None:
    facts = facts_of_images([CHINA.crop((100, 100, 356, 356)), CHINA])
    earlier = replace(facts, detail=np.full(2, np.nan))
    assert quality_scores(earlier, "blurry").tolist() == edge_scores(facts).tolist()


def test_shape_and_size_are_scored_by_hand() -> None:
    sizes = [(40 + 20 * number, 100) for number in range(6)] + [(750, 100), (100, 400), (30, 30)]
    facts = facts_of_images([CHINA.resize(size) for size in sizes])
    assert quality_scores(facts, "aspect")[[0, 6, 7]] == pytest.approx([0.4, 100 / 750, 0.25])
    assert poor_images(facts, np.ones(9, bool), "aspect").tolist() == [6, 7]
    sides = np.sqrt([width * height for width, height in sizes])
    low, usual, high = np.percentile(np.log(sides), [25, 50, 75])
    assert 3.5 * (high - low) > np.log(2), "sizes that vary much"
    expected = 0.5 ** (np.abs(np.log(sides) - usual) / (3.5 * (high - low)))
    assert quality_scores(facts, "size") == pytest.approx(expected)


def test_a_size_is_odd_by_its_ratio_to_the_usual_size_and_says_what_is_odd() -> None:
    sides = [100] * 8 + [99, 70, 49, 201, 25]
    facts, kept = facts_of_images([CHINA.resize((side, side)) for side in sides]), np.ones(13, bool)
    assert quality_scores(facts, "size")[[0, 8, 9, 10]] == pytest.approx([1, 0.99, 0.7, 0.49])
    assert poor_images(facts, kept, "size").tolist() == [12, 10, 11], "a little smaller is not odd, and ratios count"
    kept[9] = False
    assert size_words(facts, kept, np.array([12, 10, 8, 11, 0])) == [
        "smaller than 91 %", "smaller than 83 %", "smaller than 75 %", "larger than 91 %", "usual size"]


def test_an_image_that_several_checks_find_is_listed_once_with_all_reasons() -> None:
    black, pale = Image.new("RGB", (100, 100), (9, 9, 9)), Image.new("RGB", (100, 100), (250, 250, 250))
    part = CHINA.crop((100, 200, 200, 300))
    facts = facts_of_images([part, pale, part, black, part])
    kept = np.array([True, True, True, True, False])
    found = poor_by_check(facts, kept)
    assert list(found) == list(CHECKS)
    assert sorted(all_poor(found).tolist()) == [1, 3], "each once, and none that is excluded"
    assert all_poor({"dark": np.array([3, 1]), "bright": np.array([2, 3])}).tolist() == [3, 1, 2]
    assert reason_words({"dark": np.array([3, 1]), "bright": np.array([2, 3])}, np.array([2, 3, 1])) == [
        "Bright", "Dark, Bright", "Dark"]
    assert all("Low information" in words for words in reason_words(found, np.array([1, 3])))


def test_brightness_and_blur_are_measured_as_written() -> None:
    gray = Image.fromarray(np.repeat(np.arange(200, dtype=np.uint8)[:, None, None], 3, axis=2).repeat(200, axis=1))
    facts = measure(gray)
    assert facts["dark"] == pytest.approx(np.percentile(np.arange(200), 99) / 255, abs=2e-3)
    assert facts["light"] == pytest.approx(np.percentile(np.arange(200), 5) / 255, abs=2e-3)
    assert set(CHECKS) == {"blurry", "dark", "bright", "information", "aspect", "size"}
