"""What the cells of a look inside show where there is a kernel: sliders and lists above a picture."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import ipywidgets

from ..board import WidgetOrHtml

WIDE = {"description_width": "110px"}
SLIDER = {"width": "360px", "max_width": "98%"}


class Controlled(WidgetOrHtml):
    """Controls above a picture that `draw` makes of their values, one keyword for each. Without a kernel: `still`.

    still: HTML for readers without a kernel; the picture on show when it is not given.
    """

    script = "sliders.js"
    silent = (
        "The kernel does not answer: it is busy, or it was restarted. After a restart, run the cells above and then "
        "this one."
    )

    def __init__(self, draw: Callable[..., str], controls: dict[str, Any], still: str | None = None):
        self._draw, self._controls, self._still = draw, controls, still
        self.scope = f"cn-{uuid.uuid4().hex[:10]}"
        self.picture, self._answers = ipywidgets.HTML(), ipywidgets.HTML(layout={"display": "none"})
        self.picture.add_class(self.scope)
        self.widget = ipywidgets.VBox([*controls.values(), ipywidgets.VBox([self.picture, self._answers])])
        self.widget.add_class(f"{self.scope}-root")
        self._drawn = 0
        for control in controls.values():
            control.observe(lambda _: self.refresh(), names="value")
        self.refresh()

    def refresh(self) -> None:
        """Draw the picture for what the controls say now."""
        self.picture.value = self._draw(**{name: control.value for name, control in self._controls.items()})
        self._drawn += 1
        self._answers.value = str(self._drawn)  # the page sees an answer even in the same picture

    def set(self, **values: Any) -> None:
        """Move controls, as a person does."""
        for name, value in values.items():
            self._controls[name].value = value

    def static_html(self) -> str:
        """The picture that was given for readers without a kernel, else the one on show."""
        return self.picture.value if self._still is None else self._still

    def __repr__(self) -> str:
        return f"Controlled({', '.join(f'{name}={control.value!r}' for name, control in self._controls.items())})"


def number(words: str, value: float, low: float, high: float, step: float) -> ipywidgets.FloatSlider:
    """A slider for a number, which reports while it moves."""
    return ipywidgets.FloatSlider(
        description=words, value=value, min=low, max=high, step=step, style=WIDE, layout=SLIDER, readout_format=".2f"
    )


def whole_number(words: str, value: int, low: int, high: int) -> ipywidgets.IntSlider:
    """A slider for a whole number."""
    return ipywidgets.IntSlider(description=words, value=value, min=low, max=high, style=WIDE, layout=SLIDER)


def one_of(words: str, options: list[Any]) -> ipywidgets.Dropdown:
    """A list to choose from: texts, or pairs of a text and its value."""
    return ipywidgets.Dropdown(description=words, options=options, style=WIDE, layout=SLIDER)


def stops(words: str, options: list[tuple[str, Any]]) -> ipywidgets.SelectionSlider:
    """A slider that stops at each of the options, the first one first."""
    return ipywidgets.SelectionSlider(
        description=words, options=options, value=options[0][1], style=WIDE, layout={**SLIDER, "width": "460px"}
    )
