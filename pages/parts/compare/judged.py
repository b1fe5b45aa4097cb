"""What blind judgments say, once the names are revealed: the result, each person's share, and the judged queries."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st

from udml_core.exploration.gallery_content import Tile
from udml_core.numerics.judgments import Share
from udml_core.runs.search.differing import Comparison
from udml_core.runs.search.judging import EQUAL, Judging
from udml_core.runs.search.judging_words import (
    agreement_words,
    finding_words,
    interval_words,
    leading,
    leads,
    result_parts,
    result_words,
)
from udml_core.runs.search.judgment_files import read_judgments, write_judgments, write_table

from ..draw.downloads import Download, share
from ..draw.gallery import gallery
from ..draw.tables import data_table
from ..shell.run_status import escaped, escaped_message
from ..shell.user_errors import keep_user_errors
from .judge_pictures import rows_html

SHOWN = 12
"""Number of queries of each group that are shown."""
MOST_ROWS = 4
"""Number of queries of each group that are shown with both rows."""
SIDE = 64
NEVER, HALF, ALWAYS = "0 %", "50 %: neither is better", "100 %"
NAMED = "{} %: {} is always better"


def unbroken(text: str) -> str:
    """Return a text in which no line begins with a percent sign."""
    return text.replace(" %", "\u00a0%")


def range_bar(share: Share, is_blind: bool) -> None:
    """Draw the interval of the leading embedding on a line from 0 to 100 %, as the sentence beside it states it.

    Args:
        share: The share in which B is better.
        is_blind: Whether the bar does not say which embedding leads.
    """
    shown = leading(share)
    low, high, mean = (100 * value for value in (shown.low, shown.high, shown.mean))
    first, last = "BA" if not leads(share) else "AB"
    ends = (NEVER, ALWAYS) if is_blind else (NAMED.format(0, first), NAMED.format(100, last))
    of = "" if is_blind else f"Share of {last}, an equal answer counted as half: "
    words = "No judgments yet" if not share.count else f"{of}{interval_words(share)} %, mean {mean:.0f} %"
    band = f'<span class="band{" decided" if share.is_decided else ""}" style="left:{low:.1f}%;' \
           f'width:{high - low:.1f}%"></span><span class="mean" style="left:{mean:.1f}%"></span>' if share.count else ""
    st.html(f'<div class="judge-range" role="img" aria-label="{html.escape(words)}"><div class="line">{band}'
            f'<span class="half"></span></div><div class="ends"><span>{html.escape(ends[0])}</span>'
            f"<span>{HALF}</span><span>{html.escape(ends[1])}</span></div></div>")


def show_judged(judging: Judging, names: tuple[str, str], has_plain: bool, show_actions: Callable[[], object]) -> None:
    """Show the result with the names, each person's if there are several, and the judged queries.

    Args:
        judging: The session.
        names: The letters and names of A and B.
        has_plain: Whether one of the two is the plain search.
        show_actions: Shows what is next, below the result.
    """
    people, comparison = judging.people(), judging.comparison
    own = judging.share(judging.judge)
    if len(people) > 1:
        shared = judging.shared_share()
        queries = "1 query" if shared.count == 1 else f"the same {shared.count:,} queries"
        marked = f"**{escaped(names[0])}**", f"**{escaped(names[1])}**"
        st.markdown(unbroken(f"{len(people)} people judged {queries}. {result_words(shared, comparison, marked)}. "
                             f"{escaped(agreement_words(judging))}"))
        range_bar(shared, is_blind=False)
        _show_people(judging, names)
    else:
        what, sure = result_parts(judging, (escaped(names[0]), escaped(names[1])), has_plain)
        st.markdown(unbroken(f"**{what}**"))
        st.caption(unbroken(sure))
        range_bar(own, is_blind=False)
        if own.is_decided:
            st.caption(unbroken(f"{finding_words(own, comparison)}."))
    show_actions()
    _show_queries(judging, names)
    others = "" if comparison.share == 1 else "; for the others both searches find the same"
    st.caption(unbroken("The interval holds with 95 % certainty, whenever you stop, for all queries with different "
                        f"results{others}."))


def _show_people(judging: Judging, names: tuple[str, str]) -> None:
    """Show a table with the result of each person."""
    rows = [(judge, judging.share(judge)) for judge in judging.people()]
    data_table(pd.DataFrame({
        "Judge": [judge for judge, _ in rows], "Judgments": [share.count for _, share in rows],
        "Better more often": [names[int(leads(share))] for _, share in rows],
        "Share in %, an equal answer as half": [interval_words(share) for _, share in rows],
        "Decided": ["yes" if share.is_decided else "no" for _, share in rows]}),
        hide_index=True, width="content", alt="Result of each judge.")
    st.caption("Everyone judges the queries in the same order. The result above counts the queries that all have "
               "judged, each with the mean of the answers.")


def _show_queries(judging: Judging, names: tuple[str, str]) -> None:
    """Show the person's judged queries by the better embedding, each with what A and B find."""
    comparison, count = judging.comparison, judging.count(judging.judge)
    values = judging.values(judging.judge)
    is_rows = comparison.results != "first"
    most = MOST_ROWS if is_rows else SHOWN
    groups = {f"{names[0]} better": 0.0, f"{names[1]} better": 1.0, "Neither better": EQUAL}
    for place, (title, wanted) in zip([st.container() for _ in groups] if is_rows else st.columns(3), groups.items(),
                                      strict=True):
        positions = [position for position in range(count) if values[position] == wanted]
        with place:
            st.markdown(f"**{escaped(title)}**: {len(positions)}")
            if is_rows:
                show_rows(comparison, positions[:most])
            elif positions:
                show_tiles(comparison, positions[:most], title, f"judge-group-{wanted}")
            if len(positions) > most:
                st.caption(f"The first {most} are shown.")


def show_tiles(comparison: Comparison, positions: Sequence[int], title: str, key: str, columns: int = 3) -> None:
    """Show queries with the nearest images in A and in B, three images each."""
    names = comparison.dataset.names
    tiles = [Tile(int(image), names[image], "query" if word == "query" else "", word) for position in positions
             for word, image in zip(("query", "A", "B"), (comparison.differing[position],
                                                         *comparison.candidates[position]), strict=True)]
    gallery(comparison.dataset, tiles, title, key, SIDE, columns=columns)


def show_rows(comparison: Comparison, positions: Sequence[int], names: tuple[str, str] = ("A", "B")) -> None:
    """Show queries with the images that only A and only B find, each row with its name."""
    for position in positions:
        query = int(comparison.differing[position])
        rows = list(zip(names, comparison.options(position), strict=True))
        st.html(rows_html(comparison.dataset, query, rows))


def show_files(judging: Judging) -> None:
    """Show menus that export the judgments and import another person's."""
    with st.container(horizontal=True):
        share([Download("Judgments (CSV)", "judgments.csv", "text/csv", lambda: write_table(judging)),
               Download("Judgments (JSON)", "judgments.json", "application/json", lambda: write_judgments(judging))]
              if judging.judges() else [], "judge")
        with st.popover("Import judgments", icon=":material/group_add:"):
            st.caption("Add the judgments of another person, who exported them as JSON for the same two embeddings.")
            file = st.file_uploader("JSON file", type="json", key="judge-file")
            clicked = st.button("Add these judgments", icon=":material/upload:", key="judge-add", disabled=file is None)
            with keep_user_errors("judge-import", file and file.file_id, clicked):
                if clicked and file is not None:
                    st.success(escaped_message(read_judgments(file.getvalue(), file.name, judging).words))
