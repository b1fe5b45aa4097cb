"""Export a run: its files and tables, its model for other programs, or its curves for TensorBoard and MLflow."""

from udml_core.work.exporting.mirrors import mirror
from udml_core.work.exporting.model import export_model, model_archive
from udml_core.work.exporting.moving import moved_folders, plan_moving, plan_moving_back
from udml_core.work.exporting.moving_files import move_files
from udml_core.work.exporting.run_files import export
from udml_core.work.exporting.shards import export_shards
from udml_core.work.exporting.sorting import plan_sorting
from udml_core.work.exporting.sorting_files import write_plan
from udml_core.work.exporting.tables import embeddings_file, images_file, steps_without_vectors, vectors_note

__all__ = ["embeddings_file", "export", "export_model", "export_shards", "images_file", "mirror",
           "model_archive", "move_files", "moved_folders", "plan_moving", "plan_moving_back", "plan_sorting",
           "steps_without_vectors", "vectors_note", "write_plan"]
