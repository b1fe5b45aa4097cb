"""Background work: plan a request, estimate it, queue it, start and stop it."""

from udml_core.jobs.analysis_request import MOST_PLACED, analyse, place_images
from udml_core.jobs.estimate import Estimate, estimate
from udml_core.jobs.first_run import FIRST_RUN
from udml_core.jobs.launch import resume, stop, submit
from udml_core.jobs.planning import plan, plan_continuation
from udml_core.jobs.presets import Preset, departures, find_preset, image_kind, why_not_comparable
from udml_core.jobs.queue import device_lock, queue_position, resolve_device

__all__ = ["FIRST_RUN", "MOST_PLACED", "Estimate", "Preset", "analyse", "departures", "device_lock", "estimate",
           "find_preset", "image_kind", "place_images", "plan", "plan_continuation", "queue_position", "resolve_device",
           "resume", "stop", "submit", "why_not_comparable"]
