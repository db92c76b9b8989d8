"""What a cell shows of a widget: the widget itself, or HTML where no front end can draw it."""

from __future__ import annotations

from typing import Any

import ipywidgets

from .front_end import has_widget_front_end, in_colab


class WidgetOrHtml:
    """What a cell shows: `self.widget` if the front end can draw it, else `static_html()`."""

    widget: ipywidgets.Widget
    script = (
        ""  # HTML shown before the widget: a picture for readers without a kernel, and what hides it and minds keys
    )

    def static_html(self) -> str:
        """HTML that needs no widget front end."""
        raise NotImplementedError

    def _ipython_display_(self) -> None:
        """IPython's hook."""
        from IPython.display import HTML, display  # a page without a kernel never comes here

        bundle = self._repr_mimebundle_()
        if self.script and has_widget_front_end():
            display(HTML(self.script))
            bundle.pop("text/html", None)  # the picture is in the script's output
        display(bundle, raw=True)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Colab gets the widget alone: of widget and HTML, it may draw the HTML and leave the widget out."""
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        if has_widget_front_end():
            view = {"version_major": 2, "version_minor": 0, "model_id": self.widget.model_id}
            bundle["application/vnd.jupyter.widget-view+json"] = view
        if not (has_widget_front_end() and in_colab()):
            bundle["text/html"] = self.static_html()
        return bundle
