"""Search: find similar images, and improve the results without training."""

from pages.parts.shell.view_bar import show_view

show_view("search")
