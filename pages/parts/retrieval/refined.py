"""The switch between a run's embedding and a refinement of it on the page Retrieval."""

from __future__ import annotations

import streamlit as st

from pages.parts.base.address import write_address
from pages.parts.base.cached import load_retrieval
from pages.parts.base.run_hash import RUN_HASH
from pages.parts.retrieval.own_images import OwnImage, Side
from pages.parts.retrieval.query import PageQuery
from udml_core.analyses import find_analysis
from udml_core.arrays import Array
from udml_core.refined_retrieval import RefinedRetrieval, finished_refinements, outside_recipe
from udml_core.retrieval import Query, Retrieval
from udml_core.runs import Run


def choose_refinement(retrieval: Retrieval) -> RefinedRetrieval | None:
    """Show the switch "Refined" and the choice of the refinement, or a link to the page Refine without one.

    The address parameter `refined` holds the refinement's id.

    Returns:
        The refinement to search; None if the switch is off.
    """
    run = retrieval.run
    recipes = {analysis.id: analysis.spec().recipe for analysis in finished_refinements(run)}
    if not recipes:
        st.page_link("pages/refine.py", label="Refine this embedding without labels", icon=":material/auto_fix_high:",
                     query_params={"run": run.id})
        return None
    wanted = st.query_params.get("refined", "")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        is_on = st.toggle("Refined", wanted in recipes, key=f"refined-{run.id}",
                          help="Compare the embedding after training with a refinement of it instead of with the "
                               "embedding before training.")
        chosen = next(iter(recipes))
        if is_on and len(recipes) > 1:
            names = list(recipes)
            chosen = st.selectbox("Recipe", names, names.index(wanted) if wanted in names else 0,
                                  key=f"refinement-{run.id}", format_func=recipes.__getitem__)
    write_address("refined", chosen if is_on else "")
    if not is_on:
        return None
    refined = load_refined(run, chosen)
    outside = outside_recipe(refined.recipe).find("queries")
    st.caption(f"Recipe: `{refined.recipe}` on the {len(refined.result.indices):,} test images "
               f"({refined.result.protocol}). "
               + ("Own images and queries of several images are expanded by their nearest test images and change "
                  "nothing in the gallery." if outside else
                  "Own images and queries of several images change nothing in the gallery."))
    return refined


def load_refined(run: Run, analysis_id: str) -> RefinedRetrieval:
    """Return the search of a finished refinement, opened once."""
    return _refined(run, analysis_id, find_analysis(run, analysis_id).stored_status().ticket)


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs=RUN_HASH)
def _refined(run: Run, analysis_id: str, ticket: float) -> RefinedRetrieval:  # noqa: ARG001 (computed again)
    return RefinedRetrieval(load_retrieval(run), find_analysis(run, analysis_id))


def refined_query(refined: RefinedRetrieval, query: PageQuery) -> Query:
    """Build the query of the search in a refined embedding."""
    def vectors(side: Side) -> tuple[int | Array, ...]:
        return tuple(image if isinstance(image, int) else _embed(refined, image) for image in query.images(side))

    return Query(vectors("add"), vectors("subtract"))


def _embed(refined: RefinedRetrieval, image: OwnImage) -> Array:
    return _embedded(refined.retrieval.run, str(refined.recipe.find("views")), image.digest, refined, image)


@st.cache_data(max_entries=200, show_spinner="Embedding …", hash_funcs=RUN_HASH)
def _embedded(run: Run, views: str, digest: str, _refined: RefinedRetrieval, _image: OwnImage) -> Array:  # noqa: ARG001
    return _refined.embed(_image.image)
