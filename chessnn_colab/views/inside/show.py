"""A picture with controls: sliders and lists where there is a kernel, else the picture alone."""

import secrets
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets
from matplotlib.figure import Figure

from ..board import WidgetOrHtml
from ..style import figure_html


class Controlled(WidgetOrHtml):
    """Controls above a picture that `draw` makes of their values, one keyword for each.

    draw: returns HTML, or a matplotlib figure, which is described by the titles of its axes.
    controls: ipywidgets by the keyword. still: HTML for readers without a kernel; the picture that
    is shown when it is not given.
    """

    script = "sliders.js"
    silent = (
        "The kernel does not answer: it is busy, or it was restarted. After a restart, run the "
        "cells above and then this one."
    )

    def __init__(
        self,
        draw: Callable[..., str | Figure],
        controls: Mapping[str, Any],
        still: str | None = None,
    ):
        self._draw = draw
        self.controls = controls
        self._still = still
        self.scope = f"cn-{secrets.token_hex(5)}"
        self.picture = ipywidgets.HTML().add_class(self.scope)
        self._answers = ipywidgets.HTML(layout={"display": "none"})
        self.widget = ipywidgets.VBox(
            [*controls.values(), ipywidgets.VBox([self.picture, self._answers])]
        ).add_class(f"{self.scope}-root")
        self._drawn = 0
        for control in controls.values():
            control.style.description_width = "110px"
            control.layout.width = "440px"
            control.layout.max_width = "98%"
            control.observe(lambda _: self.refresh(), names="value")
        self.refresh()

    def refresh(self) -> None:
        """Draw the picture for the present values of the controls."""
        values = {name: control.value for name, control in self.controls.items()}
        drawn = self._draw(**values)
        if isinstance(drawn, Figure):
            drawn = figure_html(drawn)
        self.picture.value = drawn
        self._drawn += 1
        self._answers.value = str(self._drawn)  # the page sees an answer even in the same picture

    def static_html(self) -> str:
        """The picture for readers without a kernel."""
        return self.picture.value if self._still is None else self._still

    def __repr__(self) -> str:
        controls = (f"{name}={control.value!r}" for name, control in self.controls.items())
        return f"Controlled({', '.join(controls)})"
