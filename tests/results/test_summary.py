"""The summary of all records states the figures of the records."""

from __future__ import annotations

import json
import re
import statistics
from functools import lru_cache
from typing import Any

import pytest

from udml_core.methods.distill import Distill
from udml_core.results import benchmark as benchmark_record
from udml_core.results import records
from udml_core.work.jobs import suggestions

MAP, R1 = "map@r", "recall@1"
LOSING = ("ISIF", "STML", "AND", "sRPML", "NCE", "PSLR")
GAINING = ("RotNet", "DeepCluster", "Exemplar")
SUPERVISED = ("ML, linear", "NCA", "LMNN")
HEADS = ("ISIF", "NCE", "NPSoftmax", "PLM", "RPML")
FROM_KERNELS = ("NML", "KML, kernelized")
UNTRAINED = ("Frozen features", "PCA", "Views, whitening", "Whitening from mutual neighbors", "Averages",
             "Averages, re-ranking", "Re-ranking", "Diffusion")


@lru_cache
def record(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((records.FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return read


def benchmark(dataset: str, row: str, measure: str = MAP) -> tuple[float, float]:
    """Return a row's mean and deviation in the benchmark."""
    mean, deviation = record("benchmark")["datasets"][dataset]["rows"][row]["summary"][measure]
    return mean, deviation


def over_frozen(dataset: str, row: str, measure: str = MAP) -> float:
    """Return a row's difference to the frozen features in the benchmark."""
    return benchmark(dataset, row, measure)[0] - benchmark(dataset, "Frozen features", measure)[0]


def change(name: str, row: str, measure: str = MAP, candidate: str = "final", reference: str = "frozen") -> float:
    """Return the difference of two candidates of a row in another record."""
    summary = record(name)["rows"][row]["summary"]
    difference: float = summary[candidate][measure][0] - summary[reference][measure][0]
    return difference


def gain(row: str, measure: str = MAP) -> str:
    """Return a row's difference to the frozen features on birds, with its deviation."""
    return f"{over_frozen('birds100', row, measure):.1f} ± {benchmark('birds100', row, measure)[1]:.1f}"


def sentence(number: int) -> str:
    """Return a sentence of the summary in one line."""
    return " ".join(re.split(r"^\d\. ", records.summary(), flags=re.MULTILINE)[number].split())


def start_of(dataset: str) -> float:
    """Return the mean MAP@R of SSDML's start on a data set of the benchmark."""
    runs = record("benchmark")["datasets"][dataset]["rows"]["SSDML"]["runs"]
    return statistics.mean(run["evaluation"]["initial"][MAP] for run in runs)


def frozen(dataset: str) -> tuple[str, str]:
    """Return R@1 and MAP@R of the frozen features as text."""
    return f"{benchmark(dataset, 'Frozen features', R1)[0]:.1f}", f"{benchmark(dataset, 'Frozen features')[0]:.1f}"


def test_the_first_sentence_states_the_gains_on_birds() -> None:
    heads = {row: f"{change('birds100-heads', row):.1f}" for row in (*HEADS, "Whitening")}
    triplet, distilled = "Triplet, labels alone", "Distilled refinement"
    deviation = record("birds100-last")["rows"][distilled]["summary"]["final"][MAP][1]
    text = sentence(1)
    for words in (
            "R@1 {}, MAP@R {}".format(*frozen("birds100")),
            f"gains {gain(triplet)} points of MAP@R and {gain(triplet, R1)} of R@1",
            f"distilled refinement with 512 dimensions and no labels {change('birds100-last', distilled):.1f} ± "
            f"{deviation:.1f} and {change('birds100-last', distilled, R1):.1f};",
            f"Deep-APIT on the same labels {gain('Deep-APIT')} and {over_frozen('birds100', 'Deep-APIT', R1):.1f}",
            f"SupCon on all labels {gain('SupCon')} and {over_frozen('birds100', 'SupCon', R1):.1f}",
            f"ISIF gains {heads['ISIF']} of MAP@R, NCE {heads['NCE']}, NPSoftmax {heads['NPSoftmax']}, PLM and RPML "
            f"{heads['PLM']}, and none R@1",
            f"gains {heads['Whitening']} and {change('birds100-heads', 'Whitening', R1):.1f}, and "
            f"{over_frozen('birds100', 'Views, whitening'):.1f} and "
            f"{over_frozen('birds100', 'Views, whitening', R1):.1f} with averaged views"):
        assert words in text
    assert heads["PLM"] == heads["RPML"]
    assert all(change("birds100-heads", row, R1) < 0.1 for row in HEADS)
    named = {triplet, "Deep-APIT", "SupCon", distilled, "Views, whitening", "Whitening from mutual neighbors"}
    rows = record("benchmark")["datasets"]["birds100"]["rows"]
    others = [over_frozen("birds100", name) for name, row in rows.items()
              if name not in named and not row["sees test images"]]
    assert max(others) < min(over_frozen("birds100", row) for row in named), "no row that is not named gains more"


def test_the_second_sentence_states_who_gains_on_clothes_and_cifar() -> None:
    text, rows = sentence(2), record("benchmark")["datasets"]["fashion-mini"]["rows"]
    assert "R@1 {}, MAP@R {}".format(*frozen("fashion-mini")) in text
    assert "({} and {})".format(*frozen("cifar10")) in text
    trained = [row for row in rows if row not in UNTRAINED]
    gaining = {row for row in trained if over_frozen("fashion-mini", row) > benchmark("fashion-mini", row)[1]}
    assert gaining == set(GAINING)
    losses = [-over_frozen("fashion-mini", row) for row in LOSING]
    gains = [over_frozen("fashion-mini", row) for row in GAINING]
    assert f"({min(gains):.1f} to {max(gains):.1f})" in text
    assert f"lose {min(losses):.1f} to {max(losses):.1f}" in text
    unlabeled = [row for row in trained if rows[row]["supervision"] == "none" and rows[row]["is method"]]
    assert {row for row in unlabeled if over_frozen("fashion-mini", row) < -1} == set(LOSING)
    assert all(over_frozen("fashion-mini", row, R1) < 0 for row in trained)
    assert (f"whitening ({change('fashion-mini-heads', 'Whitening', R1):.1f}, and "
            f"{over_frozen('fashion-mini', 'Views, whitening', R1):.1f} with averaged views)") in text
    assert f"PCA gains {over_frozen('cifar10', 'PCA'):.1f} points of MAP@R" in text
    assert all(over_frozen("cifar10", row) < over_frozen("cifar10", "PCA")
               for row in record("benchmark")["datasets"]["cifar10"]["rows"] if row not in UNTRAINED)


def test_the_third_sentence_states_what_centering_gains_and_what_supervision_costs() -> None:
    text = sentence(3)
    for name, title in (("birds100-heads", "birds"), ("fashion-mini-heads", "clothes")):
        centered, whole = change(name, "Whitening", candidate="centered pca"), change(name, "Whitening")
        assert f"on {title} ({centered:.1f} of {whole:.1f})" in text
        assert centered == pytest.approx(whole / 2, rel=0.1), "half"
    assert over_frozen("cifar10", "Whitening from mutual neighbors") < 0
    losses = {dataset: [-over_frozen(dataset, row) for row in SUPERVISED] for dataset in ("birds100", "fashion-mini")}
    assert all(min(values) > 0 for values in losses.values())
    birds, clothes = (f"{max(values):.0f}" for values in losses.values())
    assert f"up to {birds} points of MAP@R on birds and {clothes} on clothes" in text
    for dataset in losses:
        for row in FROM_KERNELS:
            start = record("benchmark")["datasets"][dataset]["rows"][row]["runs"][0]["evaluation"]["initial"][MAP]
            assert max(start, benchmark(dataset, row)[0]) < benchmark(dataset, "Frozen features")[0]


def test_the_fourth_sentence_states_what_twenty_epochs_cost() -> None:
    last = " and ".join(f"{-change('birds100-last', f'{row}, 20 epochs'):.1f}" for row in ("ISIF", "PLM"))
    whole = " and ".join(f"{-change('birds100-all', row):.1f}" for row in ("ISIF", "PLM"))
    assert f"PLM lose {last} points of MAP@R with the last blocks at 112 pixels and {whole} with" in sentence(4)
    assert change("birds100-last", "Distilled refinement, 20 epochs") > 1
    assert abs(change("birds100-all", "sRPML", reference="initial")) < 0.5


def test_the_text_of_the_benchmark_counts_the_orders_of_the_papers_tables() -> None:
    read = benchmark_record.read()
    assert read is not None
    count = benchmark_record.count_orders(read)
    text = next(" ".join(finding.text.split()) for finding in records.findings() if finding.name == "benchmark")
    assert (f"Of {count.total()} pairs in the papers' tables, each counted once, {count['confirmed']} have the printed "
            f"order, {count['reversed']} the reverse, and {count['not separated']} cannot be separated") in text
    ends = [benchmark(dataset, "SSDML")[0] for dataset in ("cifar10", "fashion-mini", "birds100")]
    assert "SSDML ends at {:.1f}, {:.1f} and {:.1f}, nine, two and three points above".format(*ends) in text
    assert [round(end - start) for end, start in zip(ends, map(start_of, ("cifar10", "fashion-mini", "birds100")),
                                                     strict=True)] == [9, 2, 3]
    for row, gains in (("Re-ranking", [9, 3, 20, 8]), ("Diffusion", [4, 3, 12, 21])):
        assert [int(over_frozen(dataset, row) + 0.5) for dataset in ("cifar10", "fashion-mini", "birds100", "digits")
                ] == gains
    assert all(abs(benchmark(dataset, "Angular, labels alone")[0] - benchmark(dataset, "Learning rate 0")[0]) < 0.02
               for dataset in read.datasets), "the angular loss trains nothing"
    isif, anchors = (benchmark("birds100", row, R1) for row in ("ISIF", "AND"))
    assert isif[0] + isif[1] < anchors[0] - anchors[1]
    assert f"R@1 {anchors[0]:.1f} and MAP@R {benchmark('birds100', 'AND')[0]:.1f}, up to 0.1 points above" in text
    assert "ISIF stays below it" in text
    (rows,) = {len(dataset.entries) for dataset in read.datasets.values()}
    guide = (records.FOLDER.parents[1] / "docs" / "results.md").read_text(encoding="utf-8")
    assert f"All {rows} rows of digits, CIFAR-10, clothes and birds are measured." in " ".join(guide.split())


def test_the_fifth_sentence_names_no_claim_that_the_records_confirm() -> None:
    heads, text = record("birds100-heads")["rows"], sentence(5)
    assert "PSLR above ISIF with heads on birds (it has the higher MAP@R on digits, clothes and CIFAR-10" in text
    assert heads["PSLR"]["summary"]["final"][MAP][0] < heads["ISIF"]["summary"]["final"][MAP][0]
    for dataset in ("digits", "fashion-mini", "cifar10"):
        assert benchmark(dataset, "ISIF")[0] < benchmark(dataset, "PSLR")[0] < benchmark(dataset, "PCA")[0]
    assert "NML above LMNN(r) on digits and birds" in text
    assert abs(change("birds100-heads", "RPML, start PCA", reference="initial")) < 0.1
    pairs = record("birds100-pairs")["rows"]
    assert pairs["NML"]["summary"]["final"]["mprec@10"][0] < pairs["LMNN(r)"]["summary"]["final"]["mprec@10"][0]
    assert "ten labels per class or five hundred give the same R@1" in text
    labels = [row["summary"]["final"][R1][0] for row in record("cifar10-ssdml-labels")["rows"].values()]
    assert labels[0] == pytest.approx(labels[-1], abs=0.1), "ten labels or five hundred"


def test_the_card_and_the_preset_of_distillation_state_the_records() -> None:
    summary, runs = (record("birds100-last")["rows"]["Distilled refinement"][part] for part in ("summary", "runs"))
    card, preset = Distill.card.source, suggestions._read()["kind"]["photographs"]["says"]
    assert len(runs) == 3
    assert "Measured on birds at 112 pixels with three seeds: MAP@R {:.1f} with frozen features, {:.1f} at".format(
        *(summary[candidate][MAP][0] for candidate in ("frozen", "initial"))) in card
    assert f"and {summary['final'][MAP][0]:.1f} after two epochs" in card
    assert ("On CIFAR-10 a head of 64 dimensions ends at {:.1f}, where frozen features have {:.1f}, a head at a "
            "learning rate of 0 has {:.1f} and PCA {:.1f}").format(*(benchmark("cifar10", row)[0] for row in (
                "Distilled refinement", "Frozen features", "Learning rate 0", "PCA"))) in card
    white = "Whitening from mutual neighbors"
    assert (f"by MAP@R: {change('birds100-last', 'Distilled refinement'):.1f} points above frozen features, where "
            f"whitening, which trains nothing, gains {change('birds100-heads', 'Whitening'):.1f}. By R@1 whitening is "
            f"better: {benchmark('birds100', white, R1)[0]:.1f}, and Distill {summary['final'][R1][0]:.1f}.") in preset


def test_the_preset_of_pslr_says_that_test_images_chose_it() -> None:
    says = next(entry["says"] for entry in suggestions._read()["best"] if entry["method"] == "pslr")
    shown = {name: [record(f"{name}-pslr-components")["rows"][row]["summary"]["final"][measure][0]
                    for row in ("on instance features", "L_z + L_r + L_s")]
             for name, measure in (("cifar10", "knn@200"), ("birds100", MAP))}
    assert "Chosen on CIFAR-10 by test images of classes that training saw" in says
    assert "ends at a kNN accuracy of {:.1f}, on the latent layer at {:.1f}. As test images".format(
        *shown["cifar10"]) in says
    assert "agree: MAP@R {:.1f} and {:.1f} on unseen species".format(*shown["birds100"]) in says
