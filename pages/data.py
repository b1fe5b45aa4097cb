"""Pick a data set, import a folder, look at samples, classes and the split, compute features."""

import pandas as pd
import streamlit as st

from pages.parts.base.cached import load_dataset
from pages.parts.base.run_status import live_panel
from pages.parts.base.user_errors import show_user_errors
from pages.parts.components.gallery import gallery, tile_of
from pages.parts.data.importing import import_folder
from pages.parts.kit.figures import bars, table_behind
from pages.parts.kit.pictures import picture
from udml_core import jobs
from udml_core.backbones import BACKBONES, choose_spec
from udml_core.data import catalog
from udml_core.data.dataset import Dataset
from udml_core.data.features import features_path
from udml_core.data.splits import SPLITS, make_split
from udml_core.errors import UserError
from udml_core.runs import RunRequest, find_run, list_runs, runs_folder
from udml_core.tasks import LIVE_STATES

SAMPLES = 36
SPLIT_WORDS = {"zero-shot": "half of the classes train, the other half test: the papers' protocol",
               "seen": "the same classes on both sides, other images",
               "all": "every image trains and is searched: for images without labels"}


def choose() -> str | None:
    """The data set's name, kept in the address."""
    sources = catalog.sources()
    names = [source.name for source in sources]
    titles = {source.name: source.title + ("" if source.missing() is None else " (not here)") for source in sources}
    wanted = st.query_params.get("dataset", names[0])
    if wanted not in names:
        st.warning(f"The link names a data set that is not listed here, {wanted[:200]}. Another one is shown: choose "
                   "yours, or add its folder below.", icon=":material/link_off:")
    name = st.selectbox("Data set", names, names.index(wanted) if wanted in names else 0,
                        format_func=lambda one: titles[one])
    st.query_params["dataset"] = name
    source = next(source for source in sources if source.name == name)
    st.caption(source.summary)
    problem = source.missing()
    if problem:
        st.warning(problem, icon=":material/download:")
        return None
    return name


def overview(dataset: Dataset) -> None:
    """Counts, samples, classes, and what was skipped."""
    columns = st.columns(4)
    columns[0].metric("Images", f"{len(dataset):,}")
    columns[1].metric("Classes", len(dataset.class_names) or "none")
    columns[2].metric("Shorter side", f"{dataset.native_size} px")
    columns[3].metric("Skipped", len(dataset.skipped))
    if dataset.skipped:
        with st.expander(f"{len(dataset.skipped)} files were skipped", icon=":material/warning:"):
            st.dataframe(pd.DataFrame([vars(one) for one in dataset.skipped]), hide_index=True, width="stretch")
    st.subheader("Samples")
    names = dict(enumerate(dataset.class_names))
    chosen = None
    if names:
        chosen = st.selectbox("Class", [None, *names], format_func=lambda one: "all" if one is None else names[one])
    members = dataset.members(chosen)
    shown = [int(index) for index in members[:: max(1, len(members) // SAMPLES)][:SAMPLES]]
    picked = gallery(dataset, [tile_of(dataset, index) for index in shown], "Samples of the data set",
                     "data-samples", side=88)
    if picked is not None:
        picture(dataset.images[picked], 240, dataset.caption(picked), dataset.caption(picked))


def classes_and_split(dataset: Dataset) -> None:
    """Sizes of the classes, and who trains and tests in each split."""
    st.subheader("Classes and splits")
    rows = []
    for name in SPLITS:
        try:
            split = make_split(dataset, name)
        except UserError:
            continue
        rows.append({"Split": name, "Train": len(split.train), "Test": len(split.test), "Means": SPLIT_WORDS[name]})
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch")
    if dataset.labels is None:
        st.info("These images have no classes. Training needs none; evaluation then tells how much of the original "
                "neighborhoods stayed, not how many hits there are.", icon=":material/label_off:")
        return
    sizes = [int(size) for size in dataset.class_sizes]
    frame = pd.DataFrame({"Class": dataset.class_names, "Images": sizes})
    if len(sizes) <= 30:
        bars(dataset.class_names, sizes, "Images of each class", "data-classes")
    else:
        st.write(f"{len(sizes)} classes of {min(sizes)} to {max(sizes)} images.")
    table_behind("Every class", frame)


@st.fragment(run_every="2s")
def features_progress(run_id: str) -> None:
    """How far the features are."""
    run = find_run(run_id, runs_folder())
    if run.status().state not in LIVE_STATES:
        st.rerun(scope="app")
    live_panel(run, "data")


def features(dataset: Dataset) -> None:
    """Frozen features: there already, being computed, or one press away."""
    st.subheader("Features")
    names = list(BACKBONES)
    backbone = st.selectbox("Backbone", names, format_func=lambda one: BACKBONES[one].title, key="data-backbone")
    spec = choose_spec(backbone, dataset.native_size, dataset.gray)
    if features_path(dataset, spec).exists():
        st.success(f"Features of {BACKBONES[backbone].title} at {spec.size} pixels are there: training starts at once.",
                   icon=":material/check:")
        st.page_link("pages/train.py", label="Train on this data", icon=":material/model_training:",
                     query_params={"dataset": dataset.name})
        return
    for run in list_runs(runs_folder()):
        planned = run.spec()
        if run.status().state in LIVE_STATES and planned.dataset == dataset.name and planned.encoder == spec:
            features_progress(run.id)
            return
    st.write("They are computed once and kept. Training computes them too, if they are not there.")
    if st.button("Compute features", icon=":material/memory:"):
        with show_user_errors():
            jobs.submit(jobs.plan(RunRequest(dataset=dataset.name, method="frozen", backbone=backbone), dataset), runs_folder())
            st.rerun()


st.title("Data")
with show_user_errors():
    import_folder()
    selected = choose()
    if selected is not None:
        data = load_dataset(selected)
        overview(data)
        classes_and_split(data)
        features(data)
