"""Point the README's badge and the notebooks at a repository: make repository URL=https://github.com/..."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
URL = re.compile(r"https://github\.com/([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+?)(?:\.git)?/?")
# The badge's address, and each notebook's one line REPOSITORY = "...".
PLACES = (
    re.compile(r"(colab\.research\.google\.com/github/)([^/\s]+/[^/\s]+)(/blob/)"),
    re.compile(r'(REPOSITORY = \\?"https://github\.com/)([^"\\]+)(\\?")'),
)
FILES = ("README.md", "notebooks/*.py", "notebooks/*.ipynb")


def set_repository(url: str, root: Path = ROOT) -> list[str]:
    """Rewrite the files and return the names of those that changed. Raises ValueError for another address."""
    match = URL.fullmatch(url.strip())
    if match is None:
        raise ValueError(f"{url!r} is not a repository's address: expected https://github.com/OWNER/NAME")
    changed = []
    for path in sorted(path for pattern in FILES for path in root.glob(pattern)):
        before = text = path.read_text(encoding="utf-8")
        for place in PLACES:
            text = place.sub(lambda found: found[1] + match[1] + found[3], text)
        if text != before:
            path.write_text(text, encoding="utf-8")
            changed.append(path.relative_to(root).as_posix())
    return changed


if __name__ == "__main__":
    try:
        print("\n".join(set_repository(sys.argv[1] if len(sys.argv) > 1 else "")) or "nothing to change")
    except ValueError as error:
        print(f"make repository: {error}", file=sys.stderr)
        sys.exit(2)
