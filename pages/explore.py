"""Explore: what a run learned, and why."""

from pages.parts.shell.views import show_view

show_view("explore")
