"""Label: assign classes to images, and mark pairs."""

from pages.parts.shell.views import show_view

show_view("label")
