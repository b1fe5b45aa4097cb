"""Tables for papers: means and standard deviations over seeds as LaTeX, Markdown or CSV, with ties and differences.

Rows within one standard deviation of the best share the first place. A row with the same seeds or queries as the best
is compared with it by a paired t-test over them, corrected for the number of rows by Holm's method.
"""

from __future__ import annotations

import io
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from udml_core.base.errors import UserError
from udml_core.base.spreadsheets import write_rows
from udml_core.numerics.measures import LOWER, MEASURES, NEITHER, Measure, curve_of

Form = Literal["latex", "markdown", "csv"]
Over = Literal["seeds", "queries"]
SUFFIXES: Mapping[Form, str] = {"latex": "tex", "markdown": "md", "csv": "csv"}
LEVEL = 0.05
"""Corrected p-value below which a row differs from the best."""
FEWEST = 3
"""Seeds or queries that two rows must share for a test."""
ROUNDING = 1e-9
"""Share of the values within which differences are equal but for rounding."""
DAGGER = "†"
GREEK = ("alpha", "beta", "gamma", "delta", "varepsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu",
         "xi", "pi", "rho", "sigma", "tau", "upsilon", "varphi", "chi", "psi", "omega", "Gamma", "Delta", "Theta",
         "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega")
LATEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "±": r"$\pm$", "×": r"$\times$", "·": r"$\cdot$", "→": r"$\rightarrow$", "≥": r"$\geq$", "≤": r"$\leq$",
    "−": r"$-$", "–": "--", "—": "---", "…": r"\dots{}", "°": r"$^\circ$", "²": r"$^2$", "†": r"$^\dagger$",
    **{letter: f"$\\{name}$" for letter, name in zip("αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ", GREEK, strict=True)}}
"""What stands for a letter in LaTeX, for every engine."""


@dataclass(frozen=True)
class Cell:
    """A measure of a row.

    Attributes:
        mean: The mean over the seeds.
        deviation: The standard deviation; 0 for one seed.
        by_seed: The value of each seed; empty where only the mean is known.
        by_query: The value of each query, a mean over the seeds; empty where it is not known.
        run_by_seed: The id of the run of each seed; empty where it is not known.
    """

    mean: float
    deviation: float = 0.0
    by_seed: Mapping[int, float] = field(default_factory=dict)
    by_query: Mapping[int, float] = field(default_factory=dict)
    run_by_seed: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of_seeds(cls, by_seed: Mapping[int, float]) -> Cell:
        """Return the cell of measured seeds, at least one."""
        values = list(by_seed.values())
        return cls(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0, by_seed)


@dataclass(frozen=True)
class PaperTable:
    """Rows with the same measures.

    Attributes:
        caption: What the table shows.
        rows: Cells by row and measure; a row may lack a measure.
        over: What differences are tested over.
        split: The split of the runs; empty if the rows are no runs.
    """

    caption: str
    rows: Mapping[str, Mapping[str, Cell]]
    over: Over = "seeds"
    split: str = ""

    @property
    def measures(self) -> list[str]:
        """The measures of all rows, in order of first appearance."""
        return list(dict.fromkeys(name for row in self.rows.values() for name in row))

    def column(self, measure: str) -> dict[str, Cell]:
        """Return the cells of a measure by row."""
        return {name: row[measure] for name, row in self.rows.items() if measure in row}

    def first(self, measure: str) -> list[str]:
        """List the best row, and the rows within one standard deviation of it or with the same printed mean."""
        better, cells = _measure(measure).better, self.column(measure)
        if better == NEITHER or not cells:
            return []
        tied = ties(cells, better == LOWER)
        best = _mean_text(cells[tied[0]], measure)
        return tied + [name for name, cell in cells.items() if name not in tied and _mean_text(cell, measure) == best]

    def p_values(self, measure: str) -> dict[str, float]:
        """Return the corrected p-value of each row that can be tested against the best."""
        cells = self.column(measure)
        best = self.first(measure)[:1]
        values = {name: cell.by_seed if self.over == "seeds" else cell.by_query for name, cell in cells.items()}
        tested = {name: p for name, of in values.items() if best and name != best[0]
                  and (p := paired_p(values[best[0]], of)) is not None}
        return dict(zip(tested, holm(list(tested.values())), strict=True))

    def different(self, measure: str) -> dict[str, bool]:
        """Say which rows differ from the best, where a test is possible."""
        return {name: p < LEVEL for name, p in self.p_values(measure).items()}

    def lacks_test(self, measure: str) -> bool:
        """Return whether a row cannot be tested against the best."""
        return bool(self.first(measure)) and len(self.p_values(measure)) < len(self.column(measure)) - 1

    @property
    def notes(self) -> str:
        """How ties and differences are marked, and what was not tested."""
        said = [self._seeds,
                "Bold: the best, and every row within one standard deviation of it or with the same printed mean."]
        apart = {measure: self.different(measure) for measure in self.measures}
        if any(apart.values()):
            said.append(f"{DAGGER}: differs from the best (paired t-test over the {self.over}, Holm's correction, p < "
                        f"{LEVEL:g}).")
        if any(apart[measure].get(name) for measure in self.measures for name in self.first(measure)):
            said.append("Bold with a dagger: the difference is small beside the deviation over the seeds, but steady "
                        f"over the {self.over}.")
        if untested := [_measure(measure).name for measure in self.measures if self.lacks_test(measure)]:
            said.append(f"{', '.join(untested)}: a row is not tested if it shares fewer than {FEWEST} {self.over} with "
                        "the best, or if the difference is the same in all of them.")
        return " ".join(said)

    @property
    def _seeds(self) -> str:
        """How many seeds the means are over."""
        counts = {name: max((len(cell.by_seed) for cell in row.values()), default=0) for name, row in self.rows.items()}
        known = set(counts.values())
        if known == {1}:
            return "One seed in each row, so without a standard deviation."
        if len(known) == 1 and 0 not in known:
            return f"Mean ± standard deviation over {known.pop()} seeds."
        some = ", ".join(f"{name} {count}" for name, count in counts.items() if count)
        return "Mean ± standard deviation over the seeds" + (f" (number of seeds: {some})." if some else ".")

    def written(self, form: Form) -> str:
        """Return the table in a form.

        Raises:
            UserError: The form is unknown.
        """
        writers: dict[Form, Callable[[], str]] = {"latex": self._latex, "markdown": self._markdown, "csv": self._csv}
        if form not in writers:
            raise UserError(f"A table can be written as {', '.join(get_args(Form))}; got {form!r}. Choose one.")
        return writers[form]()

    def _cells(self, bold: str, escape: Callable[[str], str] = str) -> list[list[str]]:
        """Return the texts of all rows, the name first."""
        firsts = {measure: self.first(measure) for measure in self.measures}
        apart = {measure: self.different(measure) for measure in self.measures}

        def text(name: str, measure: str) -> str:
            written = escape(_text(self.rows[name][measure], measure))
            return (bold if name in firsts[measure] else "{}").format(written) + (
                escape(DAGGER) if apart[measure].get(name) else "")

        return [[escape(name), *(text(name, measure) if measure in row else "" for measure in self.measures)]
                for name, row in self.rows.items()]

    def _latex(self) -> str:
        heads = [latex(_measure(measure).title) for measure in self.measures]
        lines = [" & ".join(row) + r" \\" for row in [["", *heads], *self._cells(r"\textbf{{{}}}", latex)]]
        return "\n".join([
            "% Needs \\usepackage{booktabs}", r"\begin{table}", r"  \centering",
            f"  \\caption{{{latex(self.caption)}}}",
            f"  \\begin{{tabular}}{{l{'r' * len(heads)}}}", r"    \toprule", f"    {lines[0]}", r"    \midrule",
            *(f"    {line}" for line in lines[1:]), r"    \bottomrule", r"  \end{tabular}",
            f"  \\par\\smallskip\\footnotesize {latex(self.notes)}", r"\end{table}", ""])

    def _markdown(self) -> str:
        heads = ["", *(_measure(measure).title for measure in self.measures)]
        rows = [heads, ["---", *["---:"] * len(self.measures)], *self._cells("**{}**", _cell_text)]
        return "\n".join([f"**{_cell_text(self.caption)}**", "", *(f"| {' | '.join(row)} |" for row in rows), "",
                          self.notes, ""])

    def _csv(self) -> str:
        """Return a line for each row, measure and seed, or for each mean where the seeds are unknown.

        The column p has the corrected p-value of the row against the best, and the column note says why it is empty.
        """
        file = io.StringIO()
        p_values = {measure: self.p_values(measure) for measure in self.measures}
        best = {measure: self.first(measure)[:1] for measure in self.measures}

        def tested(name: str, measure: str) -> list[object]:
            if name in p_values[measure] or not best[measure]:
                return [p_values[measure].get(name, ""), ""]
            return ["", "best" if name in best[measure] else
                    f"not tested: fewer than {FEWEST} common {self.over}, or the same difference in all"]

        lines = [[name, measure, seed, value, *tested(name, measure),
                  cell.run_by_seed.get(seed, "") if isinstance(seed, int) else "", self.split]
                 for name, row in self.rows.items() for measure, cell in row.items()
                 for seed, value in cell.by_seed.items() or [("mean", cell.mean), ("deviation", cell.deviation)]]
        write_rows(file, [["row", "measure", "seed", "value", "p", "note", "run", "split"], *lines])
        return file.getvalue()


def ties(cells: Mapping[str, Cell], lowest_first: bool = False) -> list[str]:
    """List the best row, and then the rows that are within one standard deviation of it, which share its place."""
    sign = -1 if lowest_first else 1
    ordered = sorted(cells, key=lambda name: -sign * cells[name].mean)
    return [name for name in ordered if abs(cells[ordered[0]].mean - cells[name].mean)
            <= max(cells[ordered[0]].deviation, cells[name].deviation)]


def paired_p(first: Mapping[int, float], second: Mapping[int, float]) -> float | None:
    """Return the p-value of the paired t-test over common seeds or queries.

    It is None if these are too few, or if the difference is the same in all but for rounding: seeds that change nothing
    say nothing about other seeds, and rounding errors would pass for certainty.
    """
    shared = sorted(first.keys() & second.keys())
    values = np.array([[of[key] for key in shared] for of in (first, second)])
    if len(shared) < FEWEST or np.ptp(values[0] - values[1]) <= ROUNDING * np.abs(values).max():
        return None
    from scipy.stats import ttest_rel

    return float(ttest_rel(*values).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's method, in their order."""
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        corrected[at] = largest
    return corrected


def latex(text: str) -> str:
    """Return a text for LaTeX, every special letter escaped; letters of other scripts than Latin need XeLaTeX."""
    return "".join(LATEX.get(letter, letter if letter.isascii() or letter.isalpha() else "?") for letter in text)


def _measure(key: str) -> Measure:
    """Return a measure of an evaluation, or else of a curve."""
    return MEASURES.get(key) or curve_of(key)


def _text(cell: Cell, measure: str) -> str:
    deviation = f" ± {cell.deviation:.{_digits(cell, measure)}f}" if cell.deviation or len(cell.by_seed) > 1 else ""
    return _mean_text(cell, measure) + deviation


def _mean_text(cell: Cell, measure: str) -> str:
    return f"{cell.mean:.{_digits(cell, measure)}f}"


def _digits(cell: Cell, measure: str) -> int:
    digits = _measure(measure).digits
    is_count = digits == 0 and cell.deviation == 0 and cell.mean.is_integer()
    return digits if is_count else max(1, digits)  # a mean of counts is not whole


def _cell_text(text: str) -> str:
    """Return a text that cannot end a cell of a Markdown table or start a tag."""
    return re.sub(r"([|\\`*_<>\[\]])", r"\\\1", text)
