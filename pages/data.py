"""Data: choose or import a data set, view its images, compute features."""

import pandas as pd
import streamlit as st

from pages.parts.base.cached import load_dataset
from pages.parts.base.run_status import live_panel
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.gallery import gallery, tile_of
from pages.parts.data.importing import import_folder
from pages.parts.kit.figures import bars
from pages.parts.kit.pictures import picture
from pages.parts.kit.tables import table_behind
from udml_core import jobs
from udml_core.backbones import BACKBONES, DEFAULT_BACKBONE, EncoderSpec, choose_spec
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.features import features_path
from udml_core.data.splits import SPLITS, make_split
from udml_core.errors import UserError
from udml_core.runs import Run, RunRequest, list_runs, runs_folder
from udml_core.tasks import LIVE_STATES

SAMPLES = 36
MOST_BARS = 30
SPLIT_WORDS = {"zero-shot": "Half of the classes are used for training, the other half for testing. The papers use "
                            "this split.",
               "seen": "Both halves have the same classes and different images.",
               "all": "Every image is used for training and for search. Use it for images without labels."}


def choose_name() -> str | None:
    """Choose a data set; the address holds its name.

    Returns:
        The name; None if the files are missing.
    """
    sources = catalog.sources()
    names = [source.name for source in sources]
    titles = {source.name: source.title + ("" if source.missing() is None else " (not available)")
              for source in sources}
    wanted = st.query_params.get("dataset", names[0])
    if wanted not in names:
        st.warning(f"The data set '{wanted[:200]}' in the link is not listed here, so another data set is shown. "
                   "Choose a data set, or import its folder above.", icon=":material/link_off:")
    name = st.selectbox("Data set", names, names.index(wanted) if wanted in names else 0,
                        format_func=titles.__getitem__)
    st.query_params["dataset"] = name
    source = next(source for source in sources if source.name == name)
    st.caption(source.summary)
    problem = source.missing()
    if problem:
        st.warning(problem, icon=":material/download:")
        return None
    return name


def show_overview(dataset: Dataset) -> None:
    """Show the numbers of images and classes, the skipped files and samples."""
    columns = st.columns(4)
    columns[0].metric("Images", f"{len(dataset):,}")
    columns[1].metric("Classes", len(dataset.class_names) or "none")
    columns[2].metric("Shorter side", f"{dataset.native_size} px")
    columns[3].metric("Skipped files", len(dataset.skipped))
    if dataset.skipped:
        with st.expander(f"{len(dataset.skipped)} files were skipped", icon=":material/warning:"):
            st.dataframe(pd.DataFrame([vars(skipped) for skipped in dataset.skipped]), hide_index=True,
                         width="stretch")
    st.subheader("Samples")
    label = None
    if dataset.class_names:
        label = st.selectbox("Class", [None, *range(len(dataset.class_names))],
                             format_func=lambda label: "all" if label is None else dataset.class_names[label])
    members = dataset.members(label)
    shown = [int(index) for index in members[:: max(1, len(members) // SAMPLES)][:SAMPLES]]
    clicked = gallery(dataset, [tile_of(dataset, index) for index in shown], "Samples of the data set",
                      "data-samples", side=88)
    if clicked is not None:
        picture(dataset.images[clicked], 240, dataset.caption(clicked), dataset.caption(clicked))


def show_classes_and_splits(dataset: Dataset) -> None:
    """Show the size of each class and of both halves in each split."""
    st.subheader("Classes and splits")
    rows = []
    for name in SPLITS:
        try:
            split = make_split(dataset, name)
        except UserError:
            continue
        rows.append({"Split": name, "Training half": len(split.train), "Test half": len(split.test),
                     "Meaning": SPLIT_WORDS[name]})
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch")
    if dataset.labels is None:
        st.info("These images have no classes. Methods without supervision need none. Without classes the "
                "evaluation measures how well neighborhoods are preserved, not the share of hits.",
                icon=":material/label_off:")
        return
    sizes = [int(size) for size in dataset.class_sizes]
    if len(sizes) <= MOST_BARS:
        bars(dataset.class_names, sizes, "Images per class", "data-classes")
    else:
        st.write(f"{len(sizes)} classes with {min(sizes)} to {max(sizes)} images each.")
    table_behind("Images per class as a table", pd.DataFrame({"Class": dataset.class_names, "Images": sizes}))


@st.fragment(run_every="2s")
def show_feature_progress(run: Run) -> None:
    """Show a run that computes features; run the page again when it ends."""
    if run.status().state not in LIVE_STATES:
        st.rerun(scope="app")
    live_panel(run, "data")


def show_features(dataset: Dataset) -> None:
    """Show the state of a backbone's features: cached, in progress or missing."""
    st.subheader("Features")
    backbone = st.selectbox("Backbone", list(BACKBONES), list(BACKBONES).index(DEFAULT_BACKBONE),
                            format_func=lambda name: BACKBONES[name].title,
                            key="data-backbone")
    encoder = choose_spec(backbone, dataset.native_size, dataset.gray)
    if features_path(dataset, encoder).exists():
        st.success(f"The features of {BACKBONES[backbone].title} at {encoder.size} pixels are cached, so training "
                   "starts at once.", icon=":material/check:")
        st.page_link("pages/train.py", label="Train on this data set", icon=":material/model_training:",
                     query_params={"dataset": dataset.name})
        return
    live = live_run(dataset, encoder)
    if live is not None:
        show_feature_progress(live)
        return
    st.write("Features are computed once and cached. A training run computes missing features itself.")
    if st.button("Compute features", icon=":material/memory:"):
        with show_user_errors():
            request = RunRequest(dataset=dataset.name, method="frozen", backbone=backbone)
            jobs.submit(jobs.plan(request, dataset), runs_folder())
            st.rerun()


def live_run(dataset: Dataset, encoder: EncoderSpec) -> Run | None:
    """Return a waiting or running run with these features."""
    return next((run for run in list_runs(runs_folder()) if run.status().state in LIVE_STATES
                 and run.spec().dataset == dataset.name and run.spec().encoder == encoder), None)


st.title("Data")
with show_user_errors():
    import_folder()
    name = choose_name()
    if name is not None:
        data = load_dataset(name)
        show_overview(data)
        show_classes_and_splits(data)
        show_features(data)
