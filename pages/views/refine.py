"""Refine: improve the embedding of a finished run by the neighbors in a gallery, without labels."""

import streamlit as st

from pages.parts.draw.run_header import run_header
from pages.parts.draw.sections import Section, show_sections
from pages.parts.refine.cards import begin_with, choose_recipe
from pages.parts.refine.live import load_live
from pages.parts.refine.query import choose_query, current_query, explain_rank, show_query
from pages.parts.refine.recipe_effect import show_measures, show_protocol, warn_of_fall
from pages.parts.refine.verdict import GRAPH_MEASURES, show_choice
from pages.parts.runs.advised import offer_advised
from pages.parts.shell.analyses import load_result, request_analysis, show_analysis_progress
from pages.parts.shell.confirming import link_to_judging
from pages.parts.shell.pools import images_of
from pages.parts.shell.run_picker import pick_run
from pages.parts.shell.run_status import escaped
from pages.parts.shell.user_errors import fragment, show_user_errors
from pages.parts.shell.views import view_link
from udml_core.methods.distill import Distill
from udml_core.numerics.measures import measure_of
from udml_core.numerics.refinement import Recipe
from udml_core.runs import Run
from udml_core.runs.analyses import REFINED, Refined, analysis_at, plan_analysis
from udml_core.runs.analyses.kinds.refine import Refinement
from udml_core.runs.search import frame_words
from udml_core.runs.tasks import LIVE_STATES

RECORD = "birds100-last"


def show_actions(run: Run, recipe: Recipe) -> None:
    """Show the buttons that apply and copy a recipe, and exact figures once it is applied."""
    if not recipe.steps:
        return
    spec = plan_analysis(Refinement, recipe=str(recipe))
    analysis = analysis_at(run, spec)
    is_done = analysis.is_done()
    with st.container(horizontal=True, vertical_alignment="center"):
        if not is_done and not (analysis.folder.exists() and analysis.status().state in LIVE_STATES):
            request_analysis(run, spec, "Apply to all images", "refine-apply",
                             "Compute this refinement exactly for all test images, and keep it with the run.",
                             primary=True)
        if is_done:
            view_link("retrieval", label="Search the refined embedding", icon=":material/image_search:",
                         query_params={"run": run.id, "refined": analysis.id})
            link_to_judging([(run, "final"), (run, analysis.id)])
        with st.popover("Copy recipe", icon=":material/content_copy:"):
            show_copies(run, recipe)
    if is_done:
        show_exact(run, analysis.id)


def show_copies(run: Run, recipe: Recipe) -> None:
    """Show a recipe as a command and as Python."""
    st.caption("On the command line")
    st.code(f"udml refine {run.id} --recipe '{recipe}'", language="bash", wrap_lines=True)
    st.caption("In Python, on arrays of embeddings" + (" of several views (n, v, d)" if recipe.find("views") else ""))
    st.code('from udml_core.numerics.refinement import Refiner\n'
            f'Refiner("{recipe}").fit(gallery, training=training).neighbors(10)', language="python", wrap_lines=True)


def show_exact(run: Run, analysis_id: str) -> None:
    """Show the exact measures of a finished refinement."""
    result = load_result(run, analysis_id)
    assert isinstance(result, Refined)
    figures = ", ".join(filter(None, (_change_words(name, *values) for name, values in result.measures.items()
                                      if name not in GRAPH_MEASURES)))
    applied = f"Applied to all {len(result.indices):,} {images_of(run, 'test')}{f': {figures}' if figures else ''}."
    before, after = (round(value, 1) for value in result.measures.get("recall@1", (0.0, 0.0)))
    if after < before:
        st.warning(f"{applied} The first result is right less often, by {before - after:.1f} points.",
                   icon=":material/trending_down:")
    else:
        (st.success if after > before else st.info)(applied, icon=":material/task_alt:")


def _change_words(key: str, before: float, after: float) -> str:
    """Return a measure before and after a refinement; empty if it reads the same."""
    of = measure_of(key)
    name = of.plain or of.name
    if of.better == "neither":
        return f"{name} {of.text(after)}"
    texts = of.text(before), of.text(after)
    return "" if texts[0] == texts[1] else f"{name} {texts[0]} → **{texts[1]}**"


def show_distillation(run: Run) -> None:
    """Explain distillation and its limits, and offer to train it."""
    st.markdown(f"**{Distill.card.title}** trains the encoder so that a new image is found as if these steps were "
                "applied to it, without the other images and without labels.")
    st.caption("It is this project's own method, not a paper's. Its gain is far smaller than the gain of the steps "
               "themselves, most of it comes from whitening, and long training can make it worse.")
    with st.container(horizontal=True, gap="small"):
        spec = run.spec()
        view_link("train", label=f"Train it on {escaped(spec.dataset_title)}", icon=":material/model_training:",
                     width="content", query_params={"dataset": spec.dataset, "method": Distill.card.name})
        view_link("results", label="What was measured", icon=":material/table_chart:", width="content",
                     query_params={"record": RECORD})


@fragment
def explore(run: Run) -> None:
    """Show everything that depends on the recipe, and the recipe; on a phone the results come first."""
    begin_with(run)
    why = st.container()
    results, cards = st.columns([2.4, 1], gap="large")
    with cards:
        recipe = choose_recipe(has_views=run.spec().encoder.reads_images)
        show_actions(run, recipe)
        offer_advised(run)
    with why:
        show_choice(run, recipe)
    with results, show_user_errors():
        live = load_live(run, recipe)
        refined = live.gallery.refine(recipe)
        show_measures(live, refined)
        query = current_query(live, refined)
        show_query(live, refined, query)
        choose_query(live, refined, query)
        warn_of_fall(live, refined)
        sections = [Section("votes", "Why this rank?", lambda: explain_rank(live, refined, query)),
                    Section("protocol", "What each step uses", lambda: show_protocol(live, refined))
                    ] if recipe.steps else []
        if run.spec().encoder.reads_images:
            sections.append(Section("distill", "Without a gallery: distillation", lambda: show_distillation(run)))
        if sections:
            show_sections(sections, "refine-section")


def draw() -> None:
    """Draw the view."""
    with show_user_errors():
        run = pick_run()
        if run is not None:
            run_header(run, frame_words(REFINED))
            explore(run)
            show_analysis_progress(run)  # its progress lies over the corner; what it offers must not precede a verdict
