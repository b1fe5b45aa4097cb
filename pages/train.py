"""Choose data, method and hyper-parameters, see what it will take, start."""

from contextlib import suppress
from typing import get_args

import streamlit as st

from pages.parts.base.cached import opened_dataset, told
from pages.parts.base.run_picker import in_address, into_address
from pages.parts.base.run_status import duration
from pages.parts.kit.form import method_form
from pages.parts.labels.few_labels import few_labels
from pages.parts.pairs.source import PairChoice, chosen_pairs
from udml_core import jobs
from udml_core.backbones import BACKBONES, Pooling
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.label_budget import LabelSource, default_select
from udml_core.data.splits import SPLITS, Select, default_split, make_split
from udml_core.errors import UserError
from udml_core.methods import METHODS, Method
from udml_core.runs import Spec, list_runs, runs_folder
from udml_core.tasks import LIVE_STATES

OTHER, OFTEN_NAMED = "another, by name", "timm:vit_small_patch14_dinov2.lvd142m"
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)
SELECTS: tuple[Select, ...] = get_args(Select)
SELECT_WORDS: dict[LabelSource, str] = {
    "drawn": "Validation needs labels: 15 % of the training half, never seen by the method.",
    "given": "Validation asks the labels that you gave, each against the others: leave-one-out R@1, of the epochs "
             "before the effective rank of the training images tells a collapse, of methods that it tells one of. "
             "No image is held out."}


def choose_dataset() -> Dataset | None:
    """A data set that is here, kept in the address; also a folder that a run was made of."""
    titles = {source.name: source.title for source in catalog.sources() if source.missing() is None}
    wanted = st.query_params.get("dataset", next(iter(titles)))
    if wanted not in titles and any(run.spec().dataset == wanted for run in list_runs(runs_folder())):
        with suppress(UserError):
            titles |= {source.name: source.title for source in [catalog.find(wanted)] if source.missing() is None}
    if wanted not in titles:
        st.warning(f"The link names a data set that is not here, {wanted[:200]}. Another one is shown: choose yours, "
                   "or add its folder on the page Data.", icon=":material/link_off:")
    names = list(titles)
    name = st.selectbox("Data set", names, names.index(wanted) if wanted in titles else 0,
                        format_func=titles.__getitem__)
    st.query_params["dataset"] = name
    with told():
        return opened_dataset(name)
    return None


def choose_method() -> type[Method]:
    """The method and its idea."""
    by_name = {method.name: method for method in METHODS}
    wanted = st.query_params.get("method", METHODS[0].name)
    name = st.selectbox("Method", list(by_name), list(by_name).index(wanted) if wanted in by_name else 0,
                        format_func=lambda one: by_name[one].title)
    st.query_params["method"] = name
    return by_name[name]


def explain(method: type[Method]) -> None:
    """The idea in three sentences, the paper, and what to expect."""
    st.markdown(method.idea)
    needs = {"none": "No labels.", "few": "A few labels.", "pairs": "Pairs of images.", "all": "Labels of all images."}
    promise = "Expected to gain over its own start" if method.promise == "gain" else "May fall behind its start"
    st.caption(f"{needs[method.supervision]} {promise}: {method.promise_source} {method.paper}")


def choose_backbone() -> str:
    """A backbone's name, kept in the address."""
    names, usual = [*BACKBONES, OTHER], next(iter(BACKBONES))
    wanted = st.query_params.get("backbone", usual)
    listed = OTHER if ":" in wanted else in_address("backbone", names, usual)
    name = st.selectbox("Backbone", names, names.index(listed),
                        format_func=lambda one: BACKBONES[one].title if one in BACKBONES else one,
                        help="The network whose features the method starts from.")
    if name == OTHER:
        name = st.text_input("Name of the model", wanted if ":" in wanted else OFTEN_NAMED, key="train-backbone-name",
                             help="timm:NAME or torchvision:NAME; needs the package, and the internet the first time.")
    into_address("backbone", name if name in BACKBONES or ":" in name else OTHER, usual)
    return name


def plan(dataset: Dataset, method: type[Method], fields: dict[str, object], pairs: PairChoice, labels: LabelSource,
         per_class: int | None) -> Spec | None:
    """Everything else that a run needs, under one fold."""
    with st.expander("Backbone, split, seed and device", icon=":material/tune:"):
        left, right = st.columns(2, gap="large")
        with left:
            backbone = choose_backbone()
            pooling = st.segmented_control("Pooling", POOLINGS, default=POOLINGS[0],
                                           help="R-MAC reads the image at three scales, as RPML and SSDML do: slower.")
            size = st.number_input("Image size in pixels", 16, 1024, None, 16, placeholder="chosen by the data set")
        with right:
            usual = default_split(dataset)
            split = st.selectbox("Split", SPLITS, SPLITS.index(in_address("split", SPLITS, usual)))
            into_address("split", split, usual)
            seed = st.number_input("Seed", 0, 2**31 - 1, 0)
            device = st.text_input("Device", "auto", help="auto, cpu or cuda:N")
            select = st.selectbox("Keep the epoch", SELECTS, SELECTS.index(default_select(labels)),
                                  key=f"train-select-{labels}", help=SELECT_WORDS[labels])
    with told():
        return jobs.plan(dataset, method.name, fields, backbone, pooling or POOLINGS[0], size, split, int(seed),
                         device.strip() or "auto", select, labels, per_class, pairs.most, pairs.given)
    return None


def start(spec: Spec, dataset: Dataset, pairs: PairChoice) -> None:
    """What it will take, and the press."""
    expected = jobs.expect(spec, dataset)
    waiting = sum(run.stored_status().state in LIVE_STATES for run in list_runs(runs_folder()))
    columns = st.columns(3)
    columns[0].metric("Features", duration(expected.feature_seconds) if expected.feature_seconds else "there already")
    columns[1].metric("Training, about", duration(expected.training_seconds))
    columns[2].metric("Memory, about", f"{expected.memory / 1e9:.1f} GB")
    st.caption("A rough guess for two CPU cores; a GPU is faster."
               + (f" {waiting} runs are waiting or running; one runs at a time on a device." if waiting else ""))
    if pairs.given is not None:
        train = make_split(dataset, spec.split, spec.select, spec.seed).train
        st.caption(f"{len(pairs.given.within(train)):,} of the {len(pairs.given):,} pairs train: both their images lie "
                   "in the training half.")
    if st.button("Start training", type="primary", icon=":material/play_arrow:"):
        with told():
            run = jobs.submit(spec, runs_folder(), pairs.given)
            st.switch_page("pages/runs.py", query_params={"run": run.id})


st.title("Train")
try:
    left, right = st.columns(2, gap="large")
    with left:
        data = choose_dataset()
    with right:
        chosen = choose_method()
    if data is not None:
        explain(chosen)
        told_labels = few_labels(chosen, data)
        with st.container(border=True):
            values = method_form(chosen, f"train-{chosen.name}")
        pairs: PairChoice | None = PairChoice()
        if chosen.supervision == "pairs":
            pairs = chosen_pairs(data)
        planned = plan(data, chosen, values, pairs, *told_labels) if pairs is not None else None
        if pairs is not None and planned is not None:
            start(planned, data, pairs)
except UserError as error:
    st.error(str(error), icon=":material/error:")
