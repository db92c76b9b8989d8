"""Ground floor up: a room imports only from the floors below its own. A room is a module or a wing (a folder)."""

import ast
import functools
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "chessnn_colab"
# From the ground up. Rooms on one floor do not import each other.
FLOORS = """
errors
files budget report cpu words install
games
network_config selfplay_config search records devices
layers tree assembler replay advice
network
spikes learner actor
selfplay rounds learning
workers runs
config restore
launch arena
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
    "files",
    "budget",
    "report",
    "records",
    "assembler",
    "network_config",
    "workers.",
    "runs.",
)
KNOW_TORCH = {"runs.tensorboard", "workers.process"}  # its writer of events; the thread count of a new process


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
    """What a module imports, inside functions too: "torch", or "chessnn_colab.games.base" for one of ours."""
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
    """The modules of this package that a module imports; a wing stands for its __init__ where nothing else does."""
    found = {other.removeprefix("chessnn_colab.") for other in imports(name)} & set(modules())
    return {other for other in found if not any(more.startswith(f"{other}.") for more in found)} - {"", name}


NAMES = sorted(set(modules()) - {""})


def test_every_room_has_a_floor():
    assert {name.split(".")[0] for name in NAMES} == set(FLOOR_OF)


@pytest.mark.parametrize("name", NAMES)
def test_arrows_point_down(name):
    room = name.split(".")[0]
    for other in ours(name):
        lower = other.split(".")[0]
        assert lower == room or FLOOR_OF[lower] < FLOOR_OF[room], f"{name} imports {other}, which is not below it"


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


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(MAY_IMPORT_CHESS)])
def test_only_its_own_rooms_know_chess(name):
    chess = {
        found
        for found in imports(name)
        if found == "chess" or found.startswith(("chess.", "chessnn_colab.games.chess"))
    }
    assert not chess, f"{name} imports {chess}"


def test_rules_know_nothing_above_them():
    for name in NAMES:
        if name.startswith("games."):
            assert all(other.split(".")[0] in ("games", "errors") for other in ours(name)), name
    for name in ("search", "tree", "network", "layers"):
        assert not {found for found in ours(name) if found.startswith("games")}, name


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("views.")])
def test_only_views_draw(name):
    drawing = {found.split(".")[0] for found in imports(name)} & {"ipywidgets", "matplotlib", "IPython"}
    assert not drawing, f"{name} imports {drawing}"


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(TORCH_FREE) and name not in KNOW_TORCH])
def test_the_numpy_transport_knows_no_torch(name):
    assert not {found for found in imports(name) if found.split(".")[0] == "torch"}


@pytest.mark.parametrize("name", NAMES)
def test_no_float64_and_no_global_randomness(name):
    """MPS has no float64; a global generator would make one run depend on another."""
    for node in ast.walk(modules()[name]):
        if isinstance(node, ast.Attribute) and node.attr in ("float64", "double", "seed", "rand"):
            text = ast.unparse(node)
            assert text not in ("torch.float64", "torch.double"), f"{name}: {text}"
            assert node.attr != "double", f"{name}: {text}"
            assert text not in ("np.random.seed", "random.seed", "np.random.rand"), f"{name}: {text}"


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_fit_a_sitting_and_functions_a_screen(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 300
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 45, f"{path.name}: {node.name}"
