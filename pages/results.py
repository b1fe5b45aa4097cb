"""Results: this project's measurements, beside the papers'."""

from pages.parts.shell.views import show_view

show_view("results")
