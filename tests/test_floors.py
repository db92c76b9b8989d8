"""Ground floor up: a module imports only from floors below its own."""

import ast
import functools
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "chessnn_colab"
# From the ground up; modules on one line are neighbours, in the order in which they may import each other.
FLOORS = """
errors durable network_config
devices advice
games.chess.bitboards games.base games.chess.moves games.chess.material games.chess.symmetry games.chess.starts
games.chess.rules
games.chess.notation
games.registry
network spikes
search tree actor
report records array_files sealed_json runs.config_file runs.lock runs.metrics runs.checkpoint runs.snapshot runs.folder runs.backup runs.tensorboard
games.chess.pgn games.chess.perft
selfplay
workers.process workers.protocol workers.pool workers.local workers.ray
replay learner restore
arena.result arena.ratings arena.players arena.registry arena.match arena.evaluate arena.ladder
arena.chess.openings arena.chess.greedy arena.chess.minimax arena.chess.engine arena.chess.match_pgn
arena.chess.choose_move arena.chess.tactics arena.chess.limits arena.chess.uci arena.chess.kit
config budget training
views.front_end views.plots views.board views.play views.progress views.progress_widgets
check bench.clock bench.compare bench.self_play bench.table
__main__
""".split()
# For type checkers only; and the widget face, imported when it is asked for.
UPWARD = {
    ("games.chess.starts", "games.chess.rules"),
    ("games.chess.material", "games.chess.rules"),
    ("views.progress", "views.progress_widgets"),
}


@functools.cache
def modules() -> dict[str, ast.Module]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        if not name.endswith("__init__"):
            found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imports(name: str, tree: ast.Module) -> set[str]:
    """What a module imports: "torch", or "chessnn_colab.games.base" for one of ours."""
    found = set()
    package = ["chessnn_colab", *name.split(".")[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            found |= {source} | {f"{source}.{alias.name}" for alias in node.names}
    return found


def ours(name: str, tree: ast.Module) -> set[str]:
    return {found.removeprefix("chessnn_colab.") for found in imports(name, tree)} & set(modules())


def test_every_module_has_a_floor():
    assert sorted(FLOORS) == sorted(modules())


@pytest.mark.parametrize("name", sorted(modules()))
def test_arrows_point_down(name):
    for other in ours(name, modules()[name]):
        if (name, other) not in UPWARD:
            assert FLOORS.index(other) < FLOORS.index(name), f"{name} imports {other}, which lies above it"


@pytest.mark.parametrize("name", sorted(modules()))
def test_only_views_draw(name):
    drawing = {found.split(".")[0] for found in imports(name, modules()[name])} & {
        "ipywidgets",
        "matplotlib",
        "IPython",
    }
    assert not drawing or name.startswith("views."), f"{name} imports {drawing}"


@pytest.mark.parametrize(
    "name",
    [
        "records",
        "runs.checkpoint",
        "runs.snapshot",
        "runs.folder",
        "runs.backup",
        "runs.metrics",
        "array_files",
        "durable",
        "report",
        "workers.process",
        "workers.protocol",
        "workers.pool",
        "workers.local",
        "workers.ray",
    ],
)
def test_the_numpy_transport_knows_no_torch(name):
    assert not {found for found in imports(name, modules()[name]) if found.split(".")[0] == "torch"}


def test_rules_know_no_network_and_search_no_chess():
    for name, tree in modules().items():
        if name.startswith("games."):
            assert not ours(name, tree) & {"network", "search"}, name
    assert not {found for found in ours("search", modules()["search"]) if found.startswith("games")}
    assert not {found for found in ours("network", modules()["network"]) if found.startswith("games")}


@pytest.mark.parametrize("name", sorted(modules()))
def test_no_float64_and_no_global_randomness(name):
    """MPS has no float64; a global generator would make one run depend on another."""
    for node in ast.walk(modules()[name]):
        if isinstance(node, ast.Attribute) and node.attr in ("float64", "double", "seed", "rand"):
            text = ast.unparse(node)
            assert text not in ("torch.float64", "torch.double"), f"{name}: {text}"
            assert node.attr != "double", f"{name}: {text}"
            assert text not in ("np.random.seed", "random.seed", "np.random.rand"), f"{name}: {text}"


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.name)
def test_files_fit_a_sitting_and_functions_a_screen(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 380
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 60, f"{path.name}: {node.name}"
