"""How large the project is: syntax nodes, which line width cannot flatter, by wing.

python tools/size.py
"""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUDGET = 105_000  # nodes of the package


def nodes(tree: ast.AST) -> int:
    """The syntax nodes of a tree, without the contexts (load, store) that every name carries."""
    return sum(not isinstance(node, ast.expr_context) for node in ast.walk(tree))


def wing_of(path: Path) -> str:
    """The first two folders of a file, or its first one where there is no second."""
    folders = path.parts[:-1]
    return "/".join(folders[:2]) or "."


def main() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    python: Counter[str] = Counter()
    scripts: Counter[str] = Counter()
    for name in listed.stdout.splitlines():
        path = Path(name)
        if not (ROOT / path).is_file() or "vendor" in path.parts:  # written by others
            continue
        if path.suffix == ".py":
            python[wing_of(path)] += nodes(ast.parse((ROOT / path).read_text(encoding="utf-8")))
        elif path.suffix in (".js", ".mjs"):
            scripts[wing_of(path)] += len((ROOT / path).read_text(encoding="utf-8").split())
    for wing, size in sorted(python.items()):
        print(f"{size:8,}  {wing}")
    total = sum(size for wing, size in python.items() if wing.startswith("chessnn_colab"))
    print(f"{total:8,}  the package; its budget is {BUDGET:,}")
    for wing, words in sorted(scripts.items()):
        print(f"{words:8,}  words of JavaScript in {wing}")


if __name__ == "__main__":
    main()
