"""Lab: train a run, or several that differ in a value."""

from pages.parts.shell.views import show_view

show_view("lab")
