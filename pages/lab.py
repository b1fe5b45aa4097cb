"""Lab: train a run, or several that differ in a value."""

from pages.parts.shell.view_bar import show_view

show_view("lab")
