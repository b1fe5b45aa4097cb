"""Background work: plan a request, estimate it, queue it, start and stop it."""

from udml_core.work.jobs.advising import start_wanted, wake
from udml_core.work.jobs.analysis_request import MOST_PLACED, analyse, place_images
from udml_core.work.jobs.estimate import Estimate, estimate, feature_seconds, training_left
from udml_core.work.jobs.example_settings import (
    example_settings,
    example_title,
    examples_on,
    find_example,
    proof_of,
    shares_test_images,
    winning_example,
)
from udml_core.work.jobs.follow_ups import are_maps_coming, left_to_compute, wants, withdraw
from udml_core.work.jobs.launch import cancel_waiting, ensure_dispatcher, resume, start_maps, stop, submit
from udml_core.work.jobs.links import FIELDS, OPTIONS, link_of, read_fields, read_options, write_fields, write_option
from udml_core.work.jobs.planning import IMAGE_OPTIONS, caution_of_processes, encoder_of, plan, plan_continuation
from udml_core.work.jobs.presets import departures, find_preset, image_kind, why_not_comparable
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
from udml_core.work.jobs.ready import keep_ready
from udml_core.work.jobs.settings import FIRST_RUN, Settings
from udml_core.work.jobs.suggestions import (
    QUICK_SECONDS,
    apply_suggestion,
    best_settings,
    expected_seconds,
    favored_method,
    first_method,
    quick_settings,
)

__all__ = [
    "FIELDS",
    "FIRST_RUN",
    "IMAGE_OPTIONS",
    "MOST_PLACED",
    "OPTIONS",
    "QUICK_SECONDS",
    "Estimate",
    "Settings",
    "analyse",
    "apply_suggestion",
    "are_maps_coming",
    "best_settings",
    "cancel_waiting",
    "caution_of_processes",
    "departures",
    "device_lock",
    "devices_of",
    "encoder_of",
    "engine_of",
    "ensure_dispatcher",
    "estimate",
    "example_settings",
    "example_title",
    "examples_on",
    "expected_seconds",
    "favored_method",
    "feature_seconds",
    "find_example",
    "find_preset",
    "first_method",
    "image_kind",
    "keep_ready",
    "left_to_compute",
    "link_of",
    "move",
    "other_free_gpus",
    "place_images",
    "place_in_queue",
    "plan",
    "plan_continuation",
    "proof_of",
    "queue_position",
    "queue_positions",
    "quick_settings",
    "read_fields",
    "read_options",
    "resolve_device",
    "resume",
    "shares_test_images",
    "start_maps",
    "start_wanted",
    "stop",
    "submit",
    "training_left",
    "waiting_analyses",
    "waiting_runs",
    "wake",
    "wants",
    "why_not_comparable",
    "winning_example",
    "withdraw",
    "write_fields",
    "write_option",
]
