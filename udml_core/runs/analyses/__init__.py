"""Analyses of a finished run, computed in the background and stored with it: maps, graphs, grids, refinements, audits.

Each kind is a file in `kinds`, with its fields, arrays, computation and words; a new file is found by itself. `spec`
is the stored request, `folder` the folder RUN/analyses/KIND-HASH. All load without torch, because the command line
reads them at once.
"""

from udml_core.runs.analyses.fields import REFINED, Scope
from udml_core.runs.analyses.folder import (
    Analysis,
    analysis_at,
    create_analysis,
    find_analysis,
    finished_analyses,
    finished_maps,
    list_analyses,
)
from udml_core.runs.analyses.kind import AnalysisKind, OnMap
from udml_core.runs.analyses.kinds import KINDS, MAPS
from udml_core.runs.analyses.kinds.grid import ImageGrid
from udml_core.runs.analyses.kinds.placed import Placed
from udml_core.runs.analyses.kinds.refine import DEFAULT_RECIPE, Refined
from udml_core.runs.analyses.map_kind import Projection
from udml_core.runs.analyses.spec import AnalysisSpec, plan_analysis

__all__ = ["DEFAULT_RECIPE", "KINDS", "MAPS", "REFINED", "Analysis", "AnalysisKind", "AnalysisSpec", "ImageGrid",
           "OnMap", "Placed", "Projection", "Refined", "Scope", "analysis_at", "create_analysis",
           "find_analysis", "finished_analyses", "finished_maps", "list_analyses", "plan_analysis"]
