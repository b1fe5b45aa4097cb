"""Explore: what a run learned, and why."""

from pages.parts.shell.view_bar import show_view

show_view("explore")
