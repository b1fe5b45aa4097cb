"""Results: this project's measurements, beside the papers'."""

from pages.parts.shell.view_bar import show_view

show_view("results")
