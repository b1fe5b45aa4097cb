"""Text from outside in tables, uploads, judgments, words, races and sweeps, which no page may read as Markdown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet
from streamlit.testing.v1 import AppTest

from tests.app.opening import opened
from tests.app.test_advice_page import LINK, finished, outcomes
from tests.app.test_outside_text import MARK, raw_texts
from tests.app.test_pages import SHOWN
from tests.data.encoders.tiny_words import write_folder
from tests.running import trained, worked, write_digits
from tests.tiers import fast_first
from tests.work.sweeps.test_outcome import finished as measured
from tests.work.sweeps.test_outcome import group, run_of
from udml_core.data.given.log import log_path_of
from udml_core.data.given.own_columns import parse_columns
from udml_core.data.given.pair_sets import PairLog
from udml_core.runs import Run, runs_folder
from udml_core.runs.analyses import AnalysisSpec, create_analysis, plan_analysis
from udml_core.runs.search import Retrieval
from udml_core.runs.search.differing import Side, compare
from udml_core.runs.search.judging import Judging
from udml_core.runs.search.judgment_files import write_judgments
from udml_core.runs.tasks import Status
from udml_core.work.workers.analyse import keep

pytestmark = pytest.mark.usefixtures("own_places")
IMAGES = 24
KINDS = ("images", "vectors")


def finish(run: Run) -> Run:
    layout = keep(run, AnalysisSpec(kind="pca", frames=("final",)), lambda _share, _step: None)
    keep(run, AnalysisSpec(kind="grid", source=layout.id, frame="final"), lambda _share, _step: None)
    keep(run, plan_analysis(kind="refine", recipe="whiten+average"), lambda _share, _step: None)
    return run


@pytest.fixture(scope="module")
def runs(places: Path) -> dict[str, Run]:
    """A run on images with a table of metadata, and a run on a table of embeddings; names and values are marked."""
    rng, folder = np.random.default_rng(0), places / f"described {MARK}"
    folder.mkdir()
    names = [f"{number}{MARK}.png" for number in range(IMAGES)]
    for number, name in enumerate(names):
        pixels = rng.integers(0, 60, (12, 12))
        pixels[number % 3 * 3:][:3] += 150
        Image.fromarray(pixels.astype(np.uint8)).save(folder / name)
    rows = [f"{name},c{number % 3}{MARK},w{number % 2}{MARK},{number}" for number, name in enumerate(names)]
    (folder / "metadata.csv").write_text("\n".join([f"file_name,label,word{MARK},number{MARK}", *rows]) + "\n")
    table = places / f"vectors {MARK}.parquet"
    parquet.write_table(pa.table({
        "name": names, "label": [f"c{number % 3}{MARK}" for number in range(IMAGES)],
        f"word{MARK}": [f"w{number % 2}{MARK}" for number in range(IMAGES)], f"number{MARK}": np.arange(IMAGES),
        "embedding": list(rng.normal(size=(IMAGES, 8)) + 4 * np.eye(8)[np.arange(IMAGES) % 3])}), table)
    return {"images": finish(worked(places / "runs", dataset=str(folder), method="frozen", split="all")),
            "vectors": finish(worked(places / "runs", dataset=str(table), method="frozen", split="all",
                                     backbone="table"))}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("page", fast_first(SHOWN, 2))
def test_no_page_reads_a_table_as_markdown(page: str, kind: str, runs: dict[str, Run]) -> None:
    run = runs[kind]
    assert raw_texts(opened(page, run=run.id, dataset=run.spec().dataset)) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("column", [f"word{MARK}", f"number{MARK}"], ids=["text", "numbers"])
def test_a_column_colors_and_filters_without_markdown(column: str, kind: str, runs: dict[str, Run]) -> None:
    run = runs[kind]
    assert f"column: {column}" in {f"column: {name}" for name in run.dataset().columns}
    for page in ("explore", "retrieval"):
        test = opened(page, run=run.id, color=f"column: {column}")
        assert raw_texts(test) == []
        next(box for box in test.selectbox if box.label == "Column").select(column).run()
        assert raw_texts(test) == [], page
        if column.startswith("word"):
            next(box for box in test.multiselect if "alues" in box.label).select(f"w0{MARK}").run()
            assert raw_texts(test) == [], page


def test_an_uploaded_column_is_no_markdown(runs: dict[str, Run]) -> None:
    dataset = runs["images"].dataset()
    table = "\n".join([f"own{MARK},size{MARK}", *(f"v{number % 2}{MARK},{number}" for number in range(IMAGES))])
    columns = parse_columns(table.encode(), "x.csv", dataset)
    for name in columns:
        test = opened("explore", run=runs["images"].id)
        test.session_state["own-columns"] = {"of": dataset.fingerprint, "columns": columns}
        test.query_params["color"] = name
        test.run()
        assert raw_texts(test) == []


UPLOADS: dict[str, tuple[str, dict[str, str], list[tuple[str, str, bytes]]]] = {
    "columns": ("explore", {}, [("own-column", "csv", b"a\n1\n"), ("own-column", "csv", b"\xff\xfe\x00")]),
    "table": ("data", {"import": "1"}, [("import-table", "npy", b"x"), ("import-table", "parquet", b"PAR1")]),
    "archive": ("data", {"import": "1"}, [("import-archive", "zip", b"<html>"), ("import-archive", "zip", b"PK\3\4")]),
}


@pytest.mark.parametrize("place", UPLOADS)
def test_the_name_of_an_uploaded_file_is_no_markdown(place: str, runs: dict[str, Run]) -> None:
    page, query, files = UPLOADS[place]
    for key, ending, content in files:
        test = opened(page, run=runs["images"].id, dataset=runs["images"].spec().dataset, **query)
        uploader = test.file_uploader(key=key)
        name, kind = f"up{MARK}.{ending}", "application/octet-stream"
        test = (uploader.set_value([(name, content, kind)]) if uploader.proto.multiple_files
                else uploader.set_value((name, content, kind))).run()
        assert raw_texts(test) == [], key
        for button in test.button:
            if button.label.startswith("Import") and not button.disabled:
                button.click()
        test.run()
        assert raw_texts(test) == [], key


def test_a_list_of_exclusions_that_cannot_be_read_is_no_markdown(runs: dict[str, Run]) -> None:
    def draw() -> None:
        import streamlit as st

        from pages.parts.data.excluding import list_buttons

        list_buttons(st.session_state["dataset"])

    test = AppTest.from_function(draw, default_timeout=60)
    test.session_state["dataset"] = runs["images"].dataset()
    test.run().file_uploader(key="audit-file").upload(f"up{MARK}.csv", b"\xff\xfei\x00", "text/csv").run()
    test.button(key="audit-import").click().run()
    assert "up" in test.error[0].value
    assert raw_texts(test) == []


def test_the_progress_of_an_upload_is_no_markdown() -> None:
    def draw() -> None:
        import streamlit as st

        from pages.parts.shell.cached import progress_bar

        with progress_bar(f"Extracting {st.session_state['mark']} …") as report:
            report(0.5, f"reading {st.session_state['mark']}")
            st.stop()

    test = AppTest.from_function(draw)
    test.session_state["mark"] = MARK
    assert raw_texts(test.run()) == []


def test_pairs_are_no_markdown(runs: dict[str, Run]) -> None:
    dataset = runs["images"].dataset()
    log = PairLog(dataset)
    for number in range(6):
        log.add(number, number + 6, number % 2 == 0)
    for page in ("pairs", "pair_labels", "train", "labels"):
        assert raw_texts(opened(page, run=runs["images"].id, dataset=dataset.name)) == []


def judge(run: Run, name: str) -> AppTest:
    test = opened("compare", part="Judge", a=f"{run.id}:initial", b=f"{run.id}:final", judge=name)
    assert raw_texts(test) == []
    return test


def test_judges_and_their_files_are_no_markdown(places: Path, runs: dict[str, Run]) -> None:
    folder = Path(runs["images"].spec().dataset)
    run = worked(places / "runs", dataset=str(folder), method="rpml", split="all",
                 fields={"dimension": 2, "epochs": 1, "epsilon": 0.9})
    retrieval = Retrieval(run)
    session = Judging(compare(Side(retrieval, "initial"), Side(retrieval, "final")), f"Ana{MARK}")
    question = session.question()
    assert question is not None
    session.answer(question, "left")
    written = write_judgments(session)
    log_path_of(run.dataset(), "judgments").unlink()
    test = judge(run, f"me{MARK}")
    for name, content in ((f"good{MARK}.json", written), (f"bad{MARK}.json", b"{}")):
        test.file_uploader(key="judge-file").upload(name, content, "application/json").run()
        test.button(key="judge-add").click().run()
        assert raw_texts(test) == []
    assert raw_texts(judge(run, f"Ana{MARK}")) == []


def test_words_for_groups_and_queries_are_no_markdown(places: Path, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    weights, images = write_folder(tmp_path / "tiny"), write_digits(places / "photos", 120, by_class=False)
    run = trained(places / "runs", method="frozen", dataset=str(images), backbone=f"clip:{weights}", split="all")
    test = opened("labels", run=run.id, section="groups", groups="8")
    test.text_area(key=f"labels-words-{run.id}").set_value(f"bird{MARK}\nboat{MARK}\n{MARK}").run()
    assert raw_texts(test) == []
    test.text_area(key=f"labels-words-{run.id}").set_value(f"{MARK}").run()
    assert raw_texts(test) == []
    assert raw_texts(opened("retrieval", run=run.id, words=f"a bird {MARK}")) == []


def test_a_race_is_no_markdown() -> None:
    run = worked(runs_folder(), method="frozen", split="all")
    finished(run, [each.model_copy(update={"name": f"{each.name}{MARK}", "reason": f"why{MARK}"})
                   for each in outcomes(run)], f"because{MARK}")
    for page in ("home", "data", "runs"):
        assert raw_texts(opened(page, **LINK)) == []


def test_a_sweep_is_no_markdown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udml_core.work.jobs.launch.ensure_dispatcher", lambda *_: None)
    sweep = group(runs_folder(), name=f"angles {MARK}")
    for position, member in enumerate(sweep.members()):
        measured(run_of(sweep, position), 0.5 + 0.01 * position, float(member.request.fields["alpha"]))
    for page in ("sweeps", "runs", "train", "home"):
        assert raw_texts(opened(page)) == []


def test_the_reason_of_a_failure_is_no_markdown(runs: dict[str, Run]) -> None:
    """It can name a file of the user."""
    reason = f"The image a{MARK}.png cannot be read."
    run = worked(runs_folder(), method="frozen", split="all")
    run.write_status(run.status().model_copy(update={"state": "failed", "message": reason}))
    images = runs["images"]
    analysis = create_analysis(images, plan_analysis(kind="pca", scope="sample", frames=("final",)))
    analysis.write_status(Status(state="failed", message=reason))
    found = [f"{page}: {text}" for page in ("home", "runs", "train", "sweeps", "labels", "data")
             for text in raw_texts(opened(page, run=run.id))]
    found += [f"{page}: {text}" for page in ("explore", "refine", "data")
              for text in raw_texts(opened(page, run=images.id, dataset=images.spec().dataset))]
    assert found == []
