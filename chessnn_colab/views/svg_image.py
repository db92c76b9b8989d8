"""SVG as an image for a matplotlib figure: as much of SVG as boards and their pieces use."""

import re
from collections.abc import Mapping
from xml.etree import ElementTree

import numpy as np
from fontTools.pens.recordingPen import RecordingPen
from fontTools.svgLib.path import PathBuilder, parse_path
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.transforms import Affine2D, Transform

from .drawing import Drawing
from .picture import board_svg

UNITS_AN_INCH = 72  # so that a unit of the SVG is a point of matplotlib's lines and letters
_CODES = {
    "moveTo": [Path.MOVETO],
    "lineTo": [Path.LINETO],
    "curveTo": [Path.CURVE4] * 3,
    "closePath": [Path.CLOSEPOLY],
}
_ALIGNMENTS = {"start": "left", "middle": "center", "end": "right"}


def draw_board(axis: Axes, drawing: Drawing) -> None:
    """The position on `drawing` in place of an axis."""
    axis.imshow(svg_image(board_svg(drawing)))
    axis.set_axis_off()


def svg_image(svg: str, dpi: int = 200) -> np.ndarray:
    """uint8 [height, width, 4]: the picture. dpi: pixels for UNITS_AN_INCH units."""
    root = ElementTree.fromstring(svg)
    width, height = (float(size) for size in root.attrib["viewBox"].split()[2:])
    inches = (width / UNITS_AN_INCH, height / UNITS_AN_INCH)
    figure = Figure(inches, dpi=dpi)
    figure.set_layout_engine("none")
    canvas = FigureCanvasAgg(figure)
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set_axis_off()
    axis.set_xlim(0, width)
    axis.set_ylim(height, 0)
    _draw(axis, root, {}, axis.transData)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


def _draw(
    axis: Axes, element: ElementTree.Element, inherited: Mapping[str, str], place: Transform
) -> None:
    """An element and those within it. inherited: attributes of the elements around it."""
    style = {**inherited, **element.attrib}
    style |= dict(re.findall(r"([\w-]+):([^;]+)", element.get("style", "")))
    if "transform" in element.attrib:  # "matrix(a b c d e f)"
        numbers = re.findall(r"-?[\d.]+", element.attrib["transform"])
        place = Affine2D.from_values(*map(float, numbers)) + place
    fill = to_rgba(style.get("fill", "#000"), float(style.get("fill-opacity", 1)))
    shapes = PathBuilder()
    if shapes.add_path_from_element(element):
        edge = style.get("stroke", "none")
        width = float(style.get("stroke-width", 1))
        outline = _path(shapes.paths[0])
        axis.add_patch(PathPatch(outline, fc=fill, ec=edge, lw=width, transform=place))
    elif element.text:
        axis.text(
            float(style["x"]),
            float(style["y"]),
            element.text,
            fontsize=float(style["font-size"]),
            fontweight=style.get("font-weight", "normal"),
            horizontalalignment=_ALIGNMENTS[style.get("text-anchor", "start")],
            color=fill,
            transform=place,
        )
    for child in element:
        _draw(axis, child, style, place)


def _path(data: str) -> Path:
    pen = RecordingPen()
    parse_path(data, pen)
    corners = []
    codes = []
    for command, points in pen.value:
        if command in _CODES:  # an open path ends without a point
            corners += points or [(0, 0)]
            codes += _CODES[command]
    return Path(corners, codes)
