"""How many first results differ between two embeddings, and in how many of these a judge prefers the second.

A difference of mean cosines says which embedding is better, but not how much a user will notice. The judge also looks
at each query whose first result differs: in its own features, one of the two results is nearer to the query.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from udml_core.base.arrays import Array, Floats, Integers
from udml_core.numerics.second_opinion import ERRORS, LEAST, Judge, result_cosines


@dataclass(frozen=True)
class Changed:
    """What a judge sees in the first results that differ.

    Attributes:
        share: Share of the queries whose first result differs.
        better: Share of these in which the judge finds the second embedding's result nearer to the query.
        low: Lower end of its 95 % interval; 0 if fewer than 20 differ.
        high: Upper end of its 95 % interval; 1 if fewer than 20 differ.
    """

    share: float
    better: float
    low: float
    high: float

    @property
    def is_known(self) -> bool:
        """Whether enough first results differ to say how many are better."""
        return self.high - self.low < 1


def changed_results(judge: Judge, queries: Integers, before: Integers, after: Integers) -> Changed:
    """Compare the first results of two embeddings, query by query.

    Queries that share an image, as a query or as a result, are not independent: hubs are results of many. The variance
    of the share sums the products of the deviations of all such pairs of queries, and a Wilson interval has as many
    observations as independent queries with this variance would be.

    Args:
        judge: The judge of m images.
        queries: Rows (q,) of the queries among the judged images.
        before: Rows (q, k) of the results of the first embedding, nearest first.
        after: Rows (q, k) of the results of the second embedding.

    References:
        P. Aronow, C. Samii, V. Assenova, "Cluster-Robust Variance Estimation for Dyadic Data", Political Analysis 2015.
        E. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 1927.
    """
    differ = before[:, 0] != after[:, 0]
    count = int(differ.sum())
    if not count:
        return Changed(0.0, 0.5, 0.0, 1.0)
    asked, results = queries[differ], np.stack([before[differ, 0], after[differ, 0]], axis=1)
    cosines = result_cosines(judge.whitened, asked, results)
    values = (np.sign(cosines[:, 1] - cosines[:, 0]) + 1) / 2
    share, better = count / len(queries), float(values.mean())
    if count < LEAST:
        return Changed(share, better, 0.0, 1.0)
    return Changed(share, better, *_wilson(better, _independent(values, np.column_stack([asked, results]))))


def _independent(values: Floats, images: Integers) -> float:
    """Return how many independent values have the variance of the mean of these (q,), by the images (q, 3) of each."""
    count, deviations = len(values), values - values.mean()
    plain = float((deviations**2).sum())
    rows = np.repeat(np.arange(count), images.shape[1])
    contains = csr_matrix((np.ones(len(rows)), (rows, images.ravel())), (count, int(images.max()) + 1))
    shares = (contains @ contains.T).tocsr()
    shares.data = np.ones_like(shares.data)
    joint = float(deviations @ (shares @ deviations))
    return count if not plain else count * plain / max(joint, plain)


def changed_among(queries: Integers, differ: Array, votes: Floats, influence: Floats) -> Changed:
    """Return the shares of queries that differ and are better, with an interval from the influence of each image.

    Args:
        queries: Rows (q,) of the queries among m images, each once.
        differ: Whether the results of each query (q,) differ.
        votes: For each query that differs, 1 if its results are better, 0 if they are worse, one half if neither.
        influence: By how much the sum of the votes rises with the weight of each image (m,) among the results.
    """
    count = len(votes)
    if not count:
        return Changed(0.0, 0.5, 0.0, 1.0)
    share, better = count / len(queries), float(votes.mean())
    if count < LEAST:
        return Changed(share, better, 0.0, 1.0)
    plain, joint = float(((votes - better)**2).sum()), influence.copy()
    joint[queries[differ]] += votes - better
    independent = count * plain / max(float((joint**2).sum()), plain) if plain else count
    return Changed(share, better, *_wilson(better, independent))


def _wilson(share: float, count: float) -> tuple[float, float]:
    """Return the 95 % interval of a share of independent observations."""
    squared = ERRORS**2 / count
    middle = (share + squared / 2) / (1 + squared)
    half = np.sqrt(squared * share * (1 - share) + squared**2 / 4) / (1 + squared)
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))
