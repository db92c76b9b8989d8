"""What a cell shows of a widget: the widget itself, or HTML where no front end can draw it."""

from __future__ import annotations

import json
from typing import Any

import ipywidgets

from .front_end import has_widget_front_end, in_colab
from .squares import data_text


class WidgetOrHtml:
    """What a cell shows: `self.widget` if the front end can draw it, else `static_html()`.

    With a `scope`, `static_html()` stands before the widget too, for readers without a kernel. A
    script hides it while the widget lives.
    """

    widget: ipywidgets.Widget  # has the CSS class SCOPE-root
    scope = ""  # a CSS class of its own, for the widget inside that the kernel draws anew
    script = ""  # the file of views/data that starts the widget on the page (see live.js)
    silent = ""  # what a person is told when the kernel does not answer

    def static_html(self) -> str:
        """HTML that needs no widget front end."""
        raise NotImplementedError

    def _before(self) -> str:
        """`static_html()` and the script that hides it. Without the script, clicks work all the
        same.
        """
        still = f'<div class="cn-still" data-of="{self.scope}">{self.static_html()}</div>'
        given = f"{json.dumps(self.scope)}, {json.dumps(self.silent)}, {data_text(self.script)}"
        return f"{still}<script>{data_text('live.js')}({given});</script>"

    def _ipython_display_(self) -> None:
        """IPython's hook."""
        from IPython.display import HTML, display  # a page without a kernel never comes here

        bundle = self._repr_mimebundle_()
        if self.scope and has_widget_front_end():
            display(HTML(self._before()))
            bundle.pop("text/html", None)  # the picture is in the output before
        display(bundle, raw=True)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Colab gets the widget alone: of widget and HTML, it may draw the HTML and leave the
        widget out.
        """
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        if has_widget_front_end():
            view = {"version_major": 2, "version_minor": 0, "model_id": self.widget.model_id}
            bundle["application/vnd.jupyter.widget-view+json"] = view
        if not (has_widget_front_end() and in_colab()):
            bundle["text/html"] = self.static_html()
        return bundle
