"""Label: assign classes to images, and mark pairs."""

from pages.parts.shell.view_bar import show_view

show_view("label")
