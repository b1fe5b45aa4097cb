"""The widgets in a real JupyterLab and marimo in Chromium: lasso, legend, search, and what the kernel then knows."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import pytest
from playwright.sync_api import Browser, Page, expect

from experiments.real_server import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SHOW = """
import numpy as np, pandas as pd
from sklearn.datasets import load_digits
from udml_core.notebook import explore
digits = load_digits()
names = pd.Index([f"digit-{row}" for row in range(400)])
labels = pd.Series(digits.target[:400], index=names)
shown = explore(digits.data[:400], (digits.images[:400] * 15).astype(np.uint8), labels)
shown
"""
THREES = """print("the threes:", shown.selection.equals(labels.index[labels == 3]))"""
MARIMO = f"""
import marimo
app = marimo.App()
@app.cell
def _():
{indent(SHOW, "    ")}
    return labels, shown
@app.cell
def _():
    import marimo
    button = marimo.ui.run_button(label="Read")
    button
    return button, marimo
@app.cell
def _(button, labels, marimo, shown):
    threes = labels.index[labels == 3]
    marimo.md(f"Threes: {{shown.selection.equals(threes)}}, query: {{shown.query}}, {{button.value}}")
"""
ANY = """print("lasso:", 0 < len(shown.selection) < 400, "query:", shown.query, "nearest:", len(shown.neighbors))"""
STARTING = 120.0


def notebook(*cells: str) -> str:
    """Return a notebook of code cells."""
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}, "cells": [
        {"cell_type": "code", "id": f"cell-{number}", "metadata": {}, "outputs": [], "execution_count": None,
         "source": cell.strip()} for number, cell in enumerate(cells)]})


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a JupyterLab with settings of its own."""
    for package in ("jupyterlab", "anywidget"):
        pytest.importorskip(package, reason="this test needs JupyterLab: pip install jupyterlab '.[notebook]'")
    home = tmp_path_factory.mktemp("lab")
    (home / "work").mkdir()
    (home / "work" / "digits.ipynb").write_text(notebook(SHOW, THREES, ANY), encoding="utf-8")
    (home / "work" / "few.ipynb").write_text(notebook(SHOW.replace("400", "30"), "", ""), encoding="utf-8")
    own = {name: str(home / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR",
                                                       "IPYTHONDIR", "JUPYTERLAB_SETTINGS_DIR",
                                                       "JUPYTERLAB_WORKSPACES_DIR")}
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1",
         f"--ServerApp.port={port}", "--IdentityProvider.token=", f"--ServerApp.root_dir={home / 'work'}"],
        env=os.environ | own | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    try:
        wait_for(f"http://127.0.0.1:{port}/api/status", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)


def free_port() -> int:
    """Return a port that no server uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    """Wait until a server answers."""
    deadline = time.monotonic() + STARTING
    while True:
        assert server.poll() is None, "the server ended while starting"
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return
        except OSError:
            assert time.monotonic() < deadline, f"the server did not answer within {STARTING:g} seconds"
            time.sleep(0.3)


@pytest.fixture(scope="module")
def page(lab: str, browser: Browser) -> Iterator[Page]:
    """The notebook, whose first cell has shown the explorer."""
    page = opened(lab, browser, "digits")
    yield page
    page.close()


def opened(lab: str, browser: Browser, name: str) -> Page:
    """Open a notebook and run its first cell, which shows the explorer."""
    page = browser.new_page(viewport={"width": 1400, "height": 1100}, reduced_motion="reduce")
    page.set_default_timeout(120_000)
    page.goto(f"{lab}/lab/workspaces/{name}/tree/{name}.ipynb")
    page.locator(".jp-Notebook .jp-Cell").nth(2).wait_for()
    page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for()
    run(page, 0)
    page.locator(".scatter[data-drawn]").wait_for()
    return page


def run(page: Page, cell: int) -> None:
    """Run a cell of the notebook, again if the Lab was not ready: it then forgets the key."""
    place = page.locator(".jp-Notebook .jp-Cell").nth(cell)
    for _ in range(20):
        place.locator(".jp-Editor").click()
        page.keyboard.press("Control+Enter")
        page.wait_for_timeout(2_000)
        if place.locator(".jp-InputPrompt").inner_text() != "[ ]:":
            return
    raise AssertionError("the Lab runs no cell")


def output(page: Page, cell: int) -> str:
    """Run a cell and return what it prints."""
    printed = page.locator(".jp-Notebook .jp-Cell").nth(cell).locator(".jp-OutputArea-output")
    run(page, cell)
    expect(printed).to_have_count(1)
    return printed.inner_text().strip()


def test_the_selection_of_the_legend_comes_back_as_a_pandas_index(page: Page) -> None:
    expect(page.locator(".summary")).to_have_text("400 images")
    expect(page.get_by_text("Nothing selected: the first 120 of 400 images")).to_be_visible()
    page.locator(".legend button").filter(has_text="3").first.click()
    expect(page.get_by_text("Selected: ")).to_be_visible()
    assert output(page, 1) == "the threes: True"
    assert page.locator(".grid").last.locator(".tile").all_inner_texts() == ["3"] * page.locator(
        ".grid").last.locator(".tile").count()


def test_a_lasso_and_a_click_reach_the_kernel_and_no_key_of_the_lab(page: Page) -> None:
    page.locator(".jp-Notebook .jp-Cell").nth(1).locator(".jp-Editor").click()
    surface = page.locator(".overlay")
    surface.scroll_into_view_if_needed()
    box = surface.bounding_box()
    assert box is not None
    x, y, width, height = box["x"], box["y"], box["width"], box["height"]
    page.keyboard.down("Shift")
    page.mouse.move(x + width * 0.3, y + height * 0.3)
    page.mouse.down()
    for across, down in ((0.7, 0.3), (0.7, 0.7), (0.3, 0.7), (0.3, 0.35)):
        page.mouse.move(x + width * across, y + height * down, steps=6)
    page.mouse.up()
    page.keyboard.up("Shift")
    expect(page.locator(".summary")).to_contain_text("of 400 selected")
    assert page.locator(".jp-Notebook .jp-Cell.jp-mod-selected").count() == 1, "Shift selects images, no cells"
    assert page.evaluate("String(window.getSelection())") == ""
    zoom = "chart => chart.chart.camera.zoom"
    fitted = page.locator(".scatter").evaluate(zoom)
    scrolled = "document.querySelector('.jp-WindowedPanel-outer').scrollTop"
    before = page.evaluate(scrolled)
    page.mouse.wheel(0, 150)
    page.wait_for_function(f"before => {scrolled} > before", arg=before)
    assert page.locator(".scatter").evaluate(zoom) == fitted, "the map is not zoomed out past all points"
    page.mouse.wheel(0, -600)
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    surface.focus()
    for key in ("b", "p", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    row = page.locator(".strip .tile")
    expect(row).to_have_count(13)
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells, "B is the map's key, and no new cell of the Lab"
    row.nth(4).click(button="right")
    expect(page.get_by_text("Nearest images to image digit-")).to_be_visible()
    assert page.locator(".lm-Menu").count() == 0
    printed = output(page, 2)
    assert printed.startswith("lasso: True query: digit-"), printed
    assert printed.endswith("nearest: 12"), printed


def test_a_map_of_few_images_shows_each_of_them(lab: str, browser: Browser) -> None:
    page = opened(lab, browser, "few")
    drawn = page.locator(".scatter").evaluate("""chart => {
      const { overlay, images, header } = chart.chart;
      const { width, height } = overlay.size;
      return images && header.sheets && overlay.allImages(width, height).map(({ side, at: [x, y] }) => [
        side, x >= side / 2 && y >= side / 2 && x <= width - side / 2 && y <= height - side / 2]);
    }""")
    assert len(drawn) == 30
    assert all(26 <= side <= 36 for side, _ in drawn)
    assert all(inside for _, inside in drawn)
    assert page.locator(".scatter").evaluate("chart => chart.chart.overlay.taken.length") >= 30
    page.close()


def test_marimo_shows_the_widgets_and_a_cell_reads_the_selection(browser: Browser, tmp_path: Path) -> None:
    for package in ("marimo", "anywidget"):
        pytest.importorskip(package, reason="this test needs marimo: pip install marimo '.[notebook]'")
    (tmp_path / "digits.py").write_text(MARIMO, encoding="utf-8")
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "marimo", "run", "--headless", "--no-token", f"--port={port}", "digits.py"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}, stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT)
    try:
        wait_for(f"http://127.0.0.1:{port}/health", server)
        page = browser.new_page(viewport={"width": 1400, "height": 1100})
        page.set_default_timeout(60_000)
        page.goto(f"http://127.0.0.1:{port}")
        page.locator(".scatter[data-drawn]").wait_for()
        page.locator(".legend button").filter(has_text="3").first.click()
        expect(page.get_by_text("Selected: ")).to_be_visible()
        expect(page.locator(".grid .tile").first).to_have_text("3")
        page.locator(".grid .tile").first.click()
        expect(page.get_by_text("Nearest images to image digit-3,")).to_be_visible()
        expect(page.locator(".strip .tile")).to_have_count(13)
        page.get_by_role("button", name="Read").click()
        expect(page.get_by_text("Threes: True, query: digit-3")).to_be_visible()
        page.close()
    finally:
        server.terminate()
        server.wait(60)
