"""The figures that the text of the records of curation states, as the records hold them."""

from __future__ import annotations

import json
from typing import Any

from experiments import named_folders, sorting
from udml_core.results import records
from udml_core.results.records import FOLDER


def record(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def words_of(name: str) -> str:
    return next(" ".join(finding.text.split()) for finding in records.findings() if finding.name == name)


def test_the_text_of_sorting_states_the_shares_of_its_rows() -> None:
    text, results = words_of("sorting"), record("sorting")["results"]
    rows = {title: [row["after groups"] for row in errors.values()] for title, errors in results.items()}
    early, late = [row for group in rows.values() for row in group], [
        row["at the end"] for errors in results.values() for row in errors.values()]
    named, pure, minutes = ([row[name] for row in early] for name in ("share named", "purity", "minutes"))
    assert f"{min(minutes):.0f} to {max(minutes):.0f} minutes {min(named):.0f} to {max(named):.0f} %" in text
    assert f"{min(pure)} to {max(pure):.0f} %" in text
    raw, advised = ([row["share named"] for row in rows[name]] for name in ("raw features", "adviser's embedding"))
    assert f"raw features {raw[0]} % are named when no answer is wrong and {raw[1]} %" in text
    assert f"the adviser's embedding {advised[0]} and {advised[1]} %" in text
    share = [row["share named"] for row in late]
    right = [row["purity"] for row in late]
    assert f"{min(share):.0f} to {max(share):.0f} % are named and {min(right)} to {max(right):.0f} % of these" in text
    first, second = ([row["after groups"]["minutes"] for row in results[name].values()]
                     for name in ("raw features", "adviser's embedding"))
    assert {round(one - other) for one, other in zip(first, second, strict=True)} == {2}
    assert "the reader is 2 minutes earlier with the groups" in text
    assert all(other["at the end"]["named"] <= one["at the end"]["named"] for one, other in zip(
        *(results[name].values() for name in ("raw features", "adviser's embedding")), strict=True))
    assert max(row["minutes"] for row in late) <= 20.2, "the last step begins within the 20 minutes"
    assert {row["folders"] for row in early + late} == {30}


def test_the_table_of_sorting_has_the_rows_of_both_times() -> None:
    stored = record("sorting")
    for title, errors in stored["results"].items():
        rows = stored["datasets"][title]["rows"]
        assert rows == {f"{words}, {when}": {name: [value, 0.0] for name, value in row[when].items()}
                        for words, row in errors.items() for when in ("after groups", "at the end")}


def test_the_text_of_named_folders_states_the_figures_of_its_record() -> None:
    is_recorded = (FOLDER / "named-folders.json").exists()
    assert is_recorded == any(finding.name == "named-folders" for finding in records.findings())
    if is_recorded:
        rows = record("named-folders")["datasets"][named_folders.TITLE]["rows"]["one reader"]
        assert named_folders.words({name: value[0] for name, value in rows.items()}) in words_of("named-folders")


def test_the_guide_states_the_figures_of_the_records() -> None:
    guide = " ".join((FOLDER.parents[1] / "docs" / "results.md").read_text(encoding="utf-8").split())
    assert " ".join(sorting.as_table(record("sorting")["results"]).split()) in guide
    rows = record("named-folders")["datasets"][named_folders.TITLE]["rows"]["one reader"]
    assert named_folders.words({name: value[0] for name, value in rows.items()}) in guide
    messy = next(table for title, table in record("curation")["datasets"].items() if title.startswith("Messy folder"))
    for words, row in (("the best copy kept", "aligned, best copy kept"),
                       ("With hash and features together", "hash and features, first copy kept")):
        precision, recall = (messy["duplicates"][row][name][0] for name in ("precision", "recall"))
        assert (f"{words}: {precision:.0f} % of the found pairs are copies, and {recall:.0f} % of the copies are found"
                in guide)


def test_the_text_of_blur_states_the_counts_of_its_rows() -> None:
    text = words_of("blur")
    tables = {title: [[int(value[0]) for value in row.values()] for row in table["rows"].values()]
              for title, table in record("blur")["datasets"].items()}
    for title in ("photographs", "drawings", "clothes"):
        before, after = zip(*tables[title], strict=True)
        assert f"{title} {_listed(after)} in place of {_listed(before)}" in text
    before, after = tables["messy folder, five planted"][0]
    assert f"{after} among the first five in place of {before}" in text


def test_the_text_of_curation_states_the_quality_and_the_times_of_its_rows() -> None:
    text, tables = words_of("curation"), record("curation")["datasets"]
    messy = next(table for title, table in tables.items() if title.startswith("Messy folder"))
    quality, beside = ({title: {name: value[0] for name, value in row.items()} for title, row in messy[name].items()}
                       for name in ("quality", "quality beside CleanVision"))
    blurry = beside.pop("Blurry")
    assert all(not row["by the audit alone"] and not row["by CleanVision alone"] for row in beside.values())
    assert min(row["rank correlation"] for row in beside.values()) > 99.9
    assert "Five of six" in text
    assert len(beside) == 5
    found = f"it finds all {quality['Blurry']['findings']:.0f}"
    assert f"(rank correlation {blurry['rank correlation']:.0f} %): {found}" in text
    assert f"CleanVision's score {blurry['found by both'] + blurry['by CleanVision alone']:.0f};" in text
    outliers = quality.pop("Outliers")
    assert f"ten farthest outliers {outliers['planted among the first ten']:.0f} were planted" in text
    assert all(row["planted among as many first"] == row["planted"] for row in quality.values())
    times = {name: row["milliseconds"][0] / 1000 for name, row in tables["fashion-mnist"]["times"].items()}
    samples = [seconds for name, seconds in times.items() if name.startswith("100 images")]
    assert f"findings take {times['findings']:.1f} seconds and samples up to {max(samples):.1f}," in text


def _listed(counts: tuple[int, ...]) -> str:
    return f"{', '.join(map(str, counts[:-1]))} and {counts[-1]}"
