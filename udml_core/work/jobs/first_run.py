"""The run that the page Home offers first."""

from udml_core.runs import RunRequest

FIRST_RUN = RunRequest(dataset="digits", method="rpml", fields={"dimension": 4, "alpha": 15.0}, backbone="pixels",
                       split="seen")
"""A short run with a clear gain. A random projection to 4 dimensions is poor, and RPML ends above PCA of this width.
The data set and the fields were chosen on images held out of the training half."""
