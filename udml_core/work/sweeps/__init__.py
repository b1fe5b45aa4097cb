"""Sweeps: many runs that try several values, as a named group.

`plan` lists the runs of a description, `reading` reads it from YAML, `prepare` checks it against the data sets,
`group` finds the runs that belong to it, `control` starts, stops and resumes them, `progress` and `outcome` derive the
rest from the runs.
"""

from udml_core.work.sweeps.control import resume_sweep, start_sweep, stop_sweep
from udml_core.work.sweeps.criteria import CRITERIA, JUDGED, score
from udml_core.work.sweeps.group import Sweep, find_sweep, forget_sweep, list_sweeps, runs_by_key, sweep_at
from udml_core.work.sweeps.outcome import (
    Combination,
    best_combinations,
    best_run,
    combinations,
    paper_table,
    shared_first,
)
from udml_core.work.sweeps.plan import MOST_RUNS, SweepSpec, chosen_values, count_runs, requests_of
from udml_core.work.sweeps.prepare import complete, measured_seconds, plan_runs, seconds_of_runs
from udml_core.work.sweeps.progress import GroupProgress, GroupState, progress_of
from udml_core.work.sweeps.reading import OPTIONS, make_sweep, parse_sweep, read_sweep

__all__ = [
           "CRITERIA",
           "JUDGED",
           "MOST_RUNS",
           "OPTIONS",
           "Combination",
           "GroupProgress",
           "GroupState",
           "Sweep",
           "SweepSpec",
           "best_combinations",
           "best_run",
           "chosen_values",
           "combinations",
           "complete",
           "count_runs",
           "find_sweep",
           "forget_sweep",
           "list_sweeps",
           "make_sweep",
           "measured_seconds",
           "paper_table",
           "parse_sweep",
           "plan_runs",
           "progress_of",
           "read_sweep",
           "requests_of",
           "resume_sweep",
           "runs_by_key",
           "score",
           "seconds_of_runs",
           "shared_first",
           "start_sweep",
           "stop_sweep",
           "sweep_at",
]
