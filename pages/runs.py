"""Runs: all runs, and two to six of them side by side."""

from pages.parts.shell.views import show_view

show_view("runs")
