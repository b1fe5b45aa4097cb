"""Refinement of a gallery at the speed of a slider.

`LiveGallery` keeps what all recipes need: the embedding reduced to its main components, and the candidates of each
image, its nearest images in the stored embedding. A step of a recipe then searches neighbors among the candidates only,
and averages them by a sparse product. Measures use an evenly spaced sample of queries; a single query is ranked against
the whole gallery. `udml_core.numerics.refinement.Refiner` computes the same steps without these shortcuts.
"""

from udml_core.exploration.refining.effects import (
    SHOWN,
    choose_queries,
    count_hits,
    measure,
    recall_change,
    seen_images,
)
from udml_core.exploration.refining.judging import LiveJudge, LiveOpinion, judge_recipe
from udml_core.exploration.refining.live import MOST_IMAGES, MOST_TRAINING, LiveGallery
from udml_core.exploration.refining.refined_gallery import RefinedGallery
from udml_core.exploration.refining.unrefined import rounded_sample
from udml_core.exploration.refining.votes import votes_for, voting_step

__all__ = ["MOST_IMAGES", "MOST_TRAINING", "SHOWN", "LiveGallery", "LiveJudge", "LiveOpinion", "RefinedGallery",
           "choose_queries", "count_hits", "judge_recipe", "measure", "recall_change", "rounded_sample", "seen_images",
           "votes_for", "voting_step"]
