"""Set the repository's address in the README and the notebooks, and give each a Colab badge.

make repository URL=https://github.com/OWNER/NAME. Run it again to set another address.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
URL = re.compile(r"https://github\.com/([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+?)(?:\.git)?/?")
REPOSITORY = re.compile(r'(REPOSITORY = \\?")[^"\\]*(\\?")')
IMAGE = "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
COLAB = "https://colab.research.google.com/github"
# The title, an empty line, and the badge with its empty line if there is one; then what stands
# before and behind the badge's text.
MARKDOWN = (re.compile(r"\A(# .*\n\n)(?:\[!\[Open in Colab.*\n\n)?"), "", "\n\n")
PERCENT = (re.compile(r"\A(# %%.*\n# # .*\n#\n)(?:# \[!\[Open in Colab.*\n#\n)?"), "# ", "\n#\n")
JSON = (
    re.compile(r'\A([^#]*"# .*\\n",\n +"\\n",\n)(?: +"\[!\[Open in Colab.*\\n",\n +"\\n",\n)?'),
    '    "',
    '\\n",\n    "\\n",\n',
)
FILES = {"README.md": MARKDOWN, "notebooks/*.py": PERCENT, "notebooks/*.ipynb": JSON}


def set_repository(url: str, root: Path = ROOT) -> list[str]:
    """Rewrite the files and return the names of those that changed.

    Raises ValueError for an address that is not a repository's on GitHub.
    """
    match = URL.fullmatch(url.strip())
    if match is None:
        raise ValueError(
            f"{url!r} is not a repository's address: expected https://github.com/OWNER/NAME"
        )
    changed = []
    for files, (head, before, behind) in FILES.items():
        for path in sorted(root.glob(files)):
            notebook = "train" if path.name == "README.md" else path.stem
            badge = f"{IMAGE}({COLAB}/{match[1]}/blob/main/notebooks/{notebook}.ipynb)"
            line = before + badge + behind
            old = path.read_text(encoding="utf-8")
            new = head.sub(lambda found, line=line: found[1] + line, old, count=1)
            new = REPOSITORY.sub(
                lambda found: f"{found[1]}https://github.com/{match[1]}{found[2]}", new
            )
            if new != old:
                path.write_text(new, encoding="utf-8")
                changed.append(path.relative_to(root).as_posix())
    return changed


if __name__ == "__main__":
    try:
        changed = set_repository(sys.argv[1] if len(sys.argv) > 1 else "")
    except ValueError as error:
        print(f"make repository: {error}", file=sys.stderr)
        sys.exit(2)
    print("\n".join(changed) or "nothing to change")
