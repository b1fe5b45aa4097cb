"""The log of a student's attempts at a task: what was tried, when, and what the runs until then said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import localtime, strftime

from udml_core.results.lesson_tasks import Evidence, Result, Task


@dataclass(frozen=True)
class Attempt:
    """One run of a student for a task.

    Attributes:
        when: The local time of its start.
        tried: The settings that the task lets a student change.
        result: What this run and the earlier ones say; None if they lack what the task reads.
    """

    when: str
    tried: str
    result: Result | None

    def outcome(self, language: str = "en") -> str:
        """Return what came out in a language; empty if nothing is known."""
        return "" if self.result is None else self.result.in_language(language)


def attempts(task: Task, runs: Sequence[Evidence]) -> list[Attempt]:
    """Return a student's attempts at a task, newest first.

    Args:
        task: The task.
        runs: The student's finished runs of the task, newest first.
    """
    own = task.of_task(runs)
    names = dict.fromkeys([*task.fields, *task.vary])
    return [Attempt(strftime("%Y-%m-%d %H:%M", localtime(run.created)),
                    ", ".join(f"{name.replace('_', ' ')} = {run.settings[name]}" for name in names
                              if name in run.settings), task.result(own[at:]))
            for at, run in enumerate(own)]
