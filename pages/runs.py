"""Runs: all runs, and two to six of them side by side."""

from pages.parts.shell.view_bar import show_view

show_view("runs")
