"""Background work: plan a request, estimate it, queue it, start and stop it."""

from udml_core.work.jobs.analysis_request import MOST_PLACED, analyse, place_images
from udml_core.work.jobs.estimate import Estimate, estimate
from udml_core.work.jobs.example_settings import ExampleSettings, example_settings, examples_on, shares_test_images
from udml_core.work.jobs.first_run import FIRST_RUN
from udml_core.work.jobs.launch import ensure_dispatcher, resume, start_maps, stop, submit, wake
from udml_core.work.jobs.links import FIELDS, OPTIONS, link_of, read_fields, read_options, write_fields, write_option
from udml_core.work.jobs.maps import are_maps_coming, wants_maps, withdraw_maps
from udml_core.work.jobs.planning import IMAGE_OPTIONS, caution_of_processes, encoder_of, plan, plan_continuation
from udml_core.work.jobs.presets import Preset, departures, find_preset, image_kind, why_not_comparable
from udml_core.work.jobs.queue import (
    device_lock,
    devices_of,
    engine_of,
    move,
    other_free_gpus,
    place_in_queue,
    queue_position,
    queue_positions,
    resolve_device,
    waiting_analyses,
    waiting_runs,
)
from udml_core.work.jobs.suggestions import (
    QUICK_SECONDS,
    Best,
    apply_suggestion,
    best_settings,
    expected_seconds,
    quick_fields,
)

__all__ = ["FIELDS", "FIRST_RUN", "IMAGE_OPTIONS", "MOST_PLACED", "OPTIONS", "QUICK_SECONDS", "Best", "Estimate",
           "ExampleSettings", "Preset", "analyse", "apply_suggestion", "are_maps_coming", "best_settings",
           "caution_of_processes", "departures", "device_lock", "devices_of", "encoder_of", "engine_of",
           "ensure_dispatcher", "estimate", "example_settings", "examples_on", "expected_seconds", "find_preset",
           "image_kind", "link_of", "move", "other_free_gpus", "place_images", "place_in_queue", "plan",
           "plan_continuation", "queue_position", "queue_positions", "quick_fields", "read_fields", "read_options",
           "resolve_device", "resume", "shares_test_images", "start_maps", "stop", "submit", "waiting_analyses",
           "waiting_runs", "wake", "wants_maps", "why_not_comparable", "withdraw_maps", "write_fields", "write_option"]
