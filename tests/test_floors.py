"""Ground floor up: a room imports only from the floors below its own. A room is a module or a wing
(a folder).
"""

import ast
import functools
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "chessnn_colab"
# From the ground up. Rooms on one floor do not import each other.
FLOORS = """
errors
budget report cpu memory text install settings shapes clock transfer graphs
games
network_config search records in_flight devices
layers tree assembler replay advice presets branches
int8
network
spikes chances
learner actor
learner_state
iteration learning
data_parallel
lockstep
selfplay
runs
workers
config
arena device_probe ranks playing plan
strength check
training export
bench views
shell
__main__
"""
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS.split("\n")) for room in rooms.split()}
MAY_IMPORT_CHESS = ("games.", "arena.chess.", "views.", "bench.", "__main__")
TORCH_FREE = (
    "errors",
    "install",
    "budget",
    "memory",
    "report",
    "records",
    "in_flight",
    "assembler",
    "network_config",
    "settings",
    "workers.",
    "runs.",
)
KNOW_TORCH = {
    "runs.tensorboard",  # its writer of events
    "runs.networks",  # it loads them
    "runs.training_state",  # the state of network and optimizer
    "workers.process",  # the thread count of a new process
}


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Every module by its dotted name; a wing's own file, __init__, by the wing's name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def is_wing(name: str) -> bool:
    return (PACKAGE.joinpath(*name.split(".")) / "__init__.py").is_file()


@functools.cache
def imports(name: str) -> set[str]:
    """What a module imports, inside functions too: "torch", or "chessnn_colab.games.base" for one
    of ours.
    """
    found = set()
    package = ["chessnn_colab", *name.split(".")]
    package = package if is_wing(name) else package[:-1]
    for node in ast.walk(modules()[name]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            found |= {source} | {f"{source}.{alias.name}" for alias in node.names}
    return found


def ours(name: str) -> set[str]:
    """The modules of this package that a module imports; a wing stands for its __init__ where
    nothing else does.
    """
    found = {other.removeprefix("chessnn_colab.") for other in imports(name)} & set(modules())
    return {other for other in found if not any(more.startswith(f"{other}.") for more in found)} - {
        "",
        name,
    }


NAMES = sorted(set(modules()) - {""})
NODES_PER_FILE = 1_700  # a file is one sitting
NODES_PER_FUNCTION = 330  # a function is one thought


def nodes(tree: ast.AST) -> int:
    """Syntax nodes, as `make size` counts them: line width cannot flatter them."""
    return sum(not isinstance(node, ast.expr_context) for node in ast.walk(tree))


def test_every_room_has_a_floor():
    assert {name.split(".")[0] for name in NAMES} == set(FLOOR_OF)


def test_arrows_point_down():
    upward = []
    for name in NAMES:
        room = name.split(".")[0]
        for other in ours(name):
            lower = other.split(".")[0]
            if lower != room and FLOOR_OF[lower] >= FLOOR_OF[room]:
                upward.append(f"{name} imports {other}")
    assert not upward


def test_no_circles():
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, f"a circle: {' -> '.join((*path[path.index(name) :], name))}"
        if name not in done:
            for other in sorted(ours(name)):
                visit(other, (*path, name))
            done.add(name)

    for name in NAMES:
        visit(name, ())


def is_chess(module: str) -> bool:
    return module == "chess" or module.startswith(("chess.", "chessnn_colab.games.chess"))


def test_no_import_is_hidden():
    """The checks above read import statements; only the package's own door imports by name."""
    hiding = [
        name
        for name in NAMES
        for node in ast.walk(modules()[name])
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__")
    ]
    assert not hiding


def test_only_its_own_rooms_know_chess():
    knowing = []
    for name in NAMES:
        if name.startswith(MAY_IMPORT_CHESS):
            continue
        knowing += [f"{name} imports {found}" for found in imports(name) if is_chess(found)]
    assert not knowing


def test_search_and_network_know_no_game():
    for name in ("search", "tree", "network", "layers"):
        assert not {found for found in ours(name) if found.startswith("games")}, name


def importing(*libraries: str) -> list[str]:
    """The modules that import one of these libraries."""
    return [
        name for name in NAMES if {found.split(".")[0] for found in imports(name)} & {*libraries}
    ]


def test_only_views_draw():
    drawing = importing("ipywidgets", "matplotlib", "IPython")
    assert [name for name in drawing if not name.startswith("views.")] == []


def test_the_numpy_transport_knows_no_torch():
    knowing = [name for name in importing("torch") if name.startswith(TORCH_FREE)]
    assert {*knowing} <= KNOW_TORCH


def test_no_float64_and_no_global_randomness():
    """MPS has no float64; a global generator would make one run depend on another."""
    forbidden = {"np.random.seed", "random.seed", "np.random.rand"}
    found = []
    for name in NAMES:
        for node in ast.walk(modules()[name]):
            if not isinstance(node, ast.Attribute):
                continue
            text = ast.unparse(node)
            if text == "torch.float64" or node.attr == "double" or text in forbidden:
                found.append(f"{name}: {text}")
    assert not found


def test_files_fit_a_sitting_and_functions_a_thought():
    too_large = []
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        name = str(path.relative_to(PACKAGE))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        sizes = {f"{name}, {function.name}": nodes(function) for function in functions}
        too_large += [f"{what}: {n}" for what, n in sizes.items() if n > NODES_PER_FUNCTION]
        if nodes(tree) > NODES_PER_FILE:
            too_large.append(f"{name}: {nodes(tree)}")
    assert not too_large
