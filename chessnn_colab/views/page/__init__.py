"""A page for friends: one HTML file that plays against a network in any browser, without a server
or an address on the network.

The scripts beside this file are joined into the page with the network's weights. rules.js,
network.js and search.js do what games, network.py and search.py do here (tests hold them equal);
chess.js, by npm (`make page`), has the rules of chess.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from ...errors import CheckpointError
from ...games.registry import family, make_game
from ...network import SpikingNetwork, actor_copy, to_arrays
from ...runs.files import AnyPath, absolute, refused, write_atomically
from ...runs.networks import is_file, load_network
from ...runs.shared import card_of_run, new_file
from ...settings import one_of, require
from ..drawing import Drawing
from ..drawings import make_drawing
from ..picture import MARKS

LARGEST = 3_500_000  # bytes of float32 weights; where there are more, they become float16
PAGE_GAMES = ("chess", "gomoku", "tictactoe")  # whose rules rules.js has
ENGINE = ("rules.js", "network.js", "search.js")  # what the page's worker thread runs
GAME_FACTS = ("name", "title", "player_names", "discount")
DRAWING_FACTS = ("rows", "columns", "names", "grounds", "glyphs", "alarm")


def share_page(run: AnyPath, file: AnyPath, snapshot: int | None = None) -> str:
    """Write one network of a run, or of a shared file, as a page. Returns a sentence about it.

    snapshot: its iteration; None is the best, as far as that is known. Raises ConfigError for a
    game whose rules the page does not have (2048), RunError and CheckpointError as load_network
    does, CheckpointError when `file` exists or cannot be written.
    """
    target = new_file(file)
    card = card_of_run(run, snapshot)
    game = make_game(str(card["game"]))
    require("game", family(game.name), one_of(*PAGE_GAMES))
    drawing = make_drawing(game)
    network, _ = load_network(run, card["iteration"], "cpu")
    path = absolute(run)
    name = path.stem if is_file(run) else path.name
    page = page_html(drawing, network, {"run": name, **card}).encode()
    with refused(f"cannot write the page {target}", kind=CheckpointError):
        write_atomically(target, page)
    size = f"{len(page) / 1e6:.1f} MB"
    return f"wrote {file}: {size}. Open it in any browser, or send it to a friend"


def page_html(drawing: Drawing, network: SpikingNetwork, card: Mapping[str, Any]) -> str:
    """The page. drawing: of the game; card: what runs.shared says about the network."""
    arrays = to_arrays(actor_copy(network))
    half = sum(array.nbytes for array in arrays.values()) > LARGEST
    kind = np.float16 if half else np.float32
    weights = b"".join(array.astype(kind).tobytes() for array in arrays.values())
    data = {
        "game": {name: getattr(drawing.game, name) for name in GAME_FACTS},
        "drawing": {name: getattr(drawing, name) for name in DRAWING_FACTS},
        "marks": MARKS,
        "network": network.config.to_dict(),
        "card": card,
        "tensors": [[name, array.size] for name, array in arrays.items()],
        "half": half,
        "crc": zlib.crc32(weights),
    }
    return Template(_text("page.html")).substitute(
        game=drawing.game.title,
        style=_text("page.css"),
        engine="\n".join([_chess_js(), *map(_text, ENGINE)]),
        page=_text("page.js"),
        data=json.dumps(data).replace("<", "\\u003c"),  # no text ends the script it stands in
        weights=base64.b64encode(weights).decode(),
    )


def _chess_js() -> str:
    """chess.js under the name ChessRules, with its licence."""
    licence = _text("vendor/LICENSE")
    code = _text("vendor/chess.js").replace("//# sourceMappingURL=chess.js.map", "")
    return f"/* {licence}*/\nconst ChessRules = (exports => {{\n{code}\nreturn exports; }})({{}});"


def _text(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
