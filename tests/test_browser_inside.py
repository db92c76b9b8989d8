"""Sliders above a picture in a real browser: with a kernel, with one that is gone, and without
one.
"""

import pytest

from .browser import COLAB, browse, long, needs_browser, needs_colab, serve
from .test_browser_play import notebook

pytestmark = [needs_browser, pytest.mark.timeout(600), long]

SLIDERS = """
from ipywidgets import FloatSlider
from matplotlib.figure import Figure
from chessnn_colab.views.inside.show import Controlled

def draw(leak):
    figure = Figure(figsize=(4, 2))
    figure.subplots().set_title(f"leak of {leak:.0%}", loc="left")
    return figure

Controlled(draw, {"leak": FloatSlider(0.5, min=0, max=0.95, step=0.05, description="leak")})
"""
STILL, PICTURE = ".cn-still img", "[data-live] .widget-html img"


def leak(page) -> str:
    """The text of the picture above which the sliders stand."""
    return page.tab.locator(PICTURE).get_attribute("alt")


@pytest.mark.parametrize(
    "front_end", [(None, False), pytest.param((COLAB, True), marks=needs_colab)], ids=str
)
def test_sliders_stand_before_a_still_picture_that_is_all_there_is_without_a_kernel(
    tmp_path, front_end
):
    notebook(tmp_path / "sliders.ipynb", SLIDERS)
    python, classic = front_end
    with (
        serve(tmp_path, *([python] if python else []), classic=classic) as server,
        browse() as browser,
    ):
        page = server.open(browser, "sliders.ipynb")
        page.run_all()
        page.wait_until(lambda: page.tab.query_selector(PICTURE), 120)
        assert not page.tab.locator(STILL).is_visible(), (
            "the picture only stands in for the sliders"
        )
        assert "leak of 50%" in leak(page)
        page.tab.locator(".widget-readout").first.fill("0.25")
        page.tab.locator(".widget-readout").first.press("Enter")
        page.wait_until(lambda: "leak of 25%" in leak(page), 60)
        page.tab.wait_for_timeout(6000)  # longer than the page waits for an answer
        assert not page.tab.locator(".cn-silence").is_visible(), "the kernel has answered"
        assert page.errors() == []
        page.save()
        page.shut_down()
        page.tab.close()
        again = server.open(browser, "sliders.ipynb")
        again.wait_until(again.tab.locator(STILL).is_visible, 30)
        again.tab.wait_for_timeout(3000)
        assert "leak of 50%" in again.tab.locator(STILL).get_attribute("alt")
        assert (
            again.errors() == []
            and "model not found" not in again.text()
            and "Loading" not in again.text()
        )
        again.picture(f"sliders-without-kernel-{'classic' if classic else 'lab'}")
        again.shut_down()


def test_a_slider_that_is_moved_after_a_restart_says_to_run_the_cell_again(tmp_path):
    notebook(tmp_path / "sliders.ipynb", SLIDERS)
    with serve(tmp_path) as server, browse() as browser:
        page = server.open(browser, "sliders.ipynb")
        page.run_all()
        page.wait_until(lambda: page.tab.query_selector(PICTURE), 120)
        page.restart()
        notice = page.tab.locator(".cn-silence")
        assert not notice.is_visible()
        handle = page.tab.locator("[data-live] .noUi-handle").first
        handle.focus()
        handle.press("ArrowRight")
        page.wait_until(notice.is_visible, 20)
        assert notice.inner_text().endswith(
            "After a restart, run the cells above and then this one."
        )
        page.picture("sliders-restarted")
        page.shut_down()
