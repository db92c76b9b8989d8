"""What a cell shows of a widget: the widget itself, or HTML where no front end can draw it."""

import json
import time
from typing import Any

import ipywidgets

from .front_end import has_widget_front_end
from .squares import data_text

NO_WIDGETS = (
    "This page cannot show widgets, so nothing here can be clicked: reload the page (F5). It was "
    "opened before ipywidgets was installed, or has none."
)


ALARM = "font-weight:600;border:2px solid #c2410c;border-radius:4px;padding:4px 8px;margin:4px 0"


def no_widgets_notice(name: str, words: str, later: str = "", style: str = ALARM) -> str:
    """HTML that says `words` on a page that a kernel has just written and that shows no widget of
    the CSS class `name`; on a page that is opened again, `later`.
    """
    given = ", ".join(map(json.dumps, (name, int(time.time() * 1000), words, later, style)))
    script = f"<script>{data_text('no_widgets.js')}({given});</script>"
    return f'<div data-notice="{name}"></div>{script}'


def widget_bundle(widget: ipywidgets.Widget) -> dict[str, Any]:
    """What a cell's output holds of a widget: no HTML beside it, of which a front end may draw the
    HTML and leave the widget out.
    """
    view = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    return {"application/vnd.jupyter.widget-view+json": view}


class WidgetOrHtml:
    """What a cell shows: `self.widget` if the front end can draw it, else `static_html()`.

    `static_html()` stands before the widget too, for readers without a kernel. A script hides it
    while the widget lives.
    """

    widget: ipywidgets.Widget  # has the CSS class SCOPE-root
    scope: str  # a CSS class of its own, for the widget inside that the kernel draws anew
    script: str  # the file of views/data that starts the widget on the page (see live.js)
    silent: str  # what a person is told when the kernel does not answer

    def static_html(self) -> str:
        """HTML that needs no widget front end."""
        raise NotImplementedError

    def _before(self) -> str:
        """`static_html()` and the script that hides it. Without the script, clicks work all the
        same.
        """
        still = f'<div class="cn-still" data-of="{self.scope}">{self.static_html()}</div>'
        given = f"{json.dumps(self.scope)}, {json.dumps(self.silent)}, {data_text(self.script)}"
        notice = no_widgets_notice(f"{self.scope}-root", NO_WIDGETS)
        return f"{notice}{still}<script>{data_text('live.js')}({given});</script>"

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display  # a page without a kernel never comes here

        bundle: dict[str, Any] = {"text/plain": repr(self)}
        if has_widget_front_end():
            display(HTML(self._before()))
            bundle |= widget_bundle(self.widget)
        else:
            bundle["text/html"] = self.static_html()
        display(bundle, raw=True)
