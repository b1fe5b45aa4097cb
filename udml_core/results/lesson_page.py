"""What the page of the course says around the lessons, in every language of the course."""

from __future__ import annotations

from udml_core.results.lesson_texts import said

TITLE = said("Learn")
CAPTION = said("Metric learning from the first distance to a checked result. Every lesson runs in the browser, on data "
               "that come with the app.")
TEACHERS = said("For teachers")
ABOUT_TEACHERS = said("Each lesson has a presentation for the last row (**Present**), a one-page summary, a handout "
                      "with exercises and no answers, and teacher notes that print apart. The download has the course "
                      "as HTML files that work without a server, for a web page or a stick. They link to this app if "
                      "others reach it at its address; otherwise they say how to get it, and what to do there.")
DOWNLOAD = said("Download the course")
SUMMARY = said("Class summary")
NO_ANSWERS = said("No answers yet. The answers of each reader on this server who ticks **Count my next answers** above "
                  "the cards are counted here, without names; they stay on this computer.")
COLUMNS = {"lesson": said("lesson"), "answers before": said("answers before"),
           "correct before": said("correct before %"), "answers after": said("answers after"),
           "correct after": said("correct after %"), "solved": said("solved the task")}
"""Names of the columns of the class summary."""
CSV = said("Download CSV")
ABOUT_CSV = said("One row for each answer, each solved task and each attempt at a task, with the random name of its "
                 "reader.")
TASK_WAITS = said("The task appears after your prediction.")
ATTEMPTS = said("Your attempts")
ATTEMPT_COLUMNS = said("when"), said("what you tried"), said("what came out")
DELETE = said("Delete the answers")
ABOUT_DELETE = said("Deletes the answers of the class on this computer. It cannot be undone.")
LINKS = said("Links of students")
ONE_LINK = said("One link a line")
ABOUT_LINKS = said("A student copies the link above the cards of the course, also in exported files. The link of the "
                   "app also says which tasks the student solved there.")
ADD = said("Add answers")
ADDED = said("{count} answers added. The first answer of a reader counts.")
ADDED_ONE = said("{count} answer added. The first answer of a reader counts.")
IN_ENGLISH = said("(in English)")
ABOUT_ENGLISH = said("The program and all labels in it are in English.")


def to_english(words: str, language: str) -> str:
    """Return the words of a link to a page in English, which says so in the other languages of the course."""
    return words if language == "en" else f"{words} {IN_ENGLISH.words(language)}"
