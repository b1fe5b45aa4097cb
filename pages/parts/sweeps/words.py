"""Values and measures of a sweep in words."""

from __future__ import annotations

from udml_core.numerics.measures import Measure
from udml_core.runs.run_comparison import Spread
from udml_core.work.sweeps import Combination

from ..shell.run_status import METHOD_TITLES, escaped
from ..shell.setting_words import setting_words


def combination_title(one: Combination) -> str:
    """Return a combination, such as RPML with α 30°, dimension 16."""
    values = ", ".join(setting_words(name, value, one.method) for name, value in one.values.items())
    return METHOD_TITLES.get(one.method, one.method) + (f" with {values}" if values else "")


def combination_words(one: Combination) -> str:
    """Return a combination in Markdown."""
    return escaped(combination_title(one))


def measured(value: Spread | None, is_percent: bool = True, digits: int = 1) -> str:
    """Return a mean with its standard deviation over the seeds; a dash if there is none."""
    if value is None:
        return "–"
    deviation = "" if value.deviation is None else f" ± {value.deviation:.{digits}f}"
    return f"{value.mean:.{digits}f}{deviation}{' %' if is_percent else ''}".replace("-", "−")


def criterion_text(one: Combination, criterion: Measure) -> str:
    """Return a combination's criterion."""
    return measured(one.score, criterion.is_percent, criterion.digits)
