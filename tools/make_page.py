"""Fetch chess.js, the rules of chess of the page for friends, in one pinned version, with its licence, by npm.

python tools/make_page.py [FOLDER]. Writes into the package's views/page/vendor by default.
"""

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "chessnn_colab" / "views" / "page" / "vendor"
PACKAGE = "chess.js@1.4.0"
FILES = {"package/dist/cjs/chess.js": "chess.js", "package/LICENSE": "LICENSE"}


def fetch(folder: Path) -> None:
    """Write the files of FILES into `folder`. Raises CalledProcessError with npm's words."""
    with tempfile.TemporaryDirectory() as place:
        command = ["npm", "pack", PACKAGE, "--silent", "--pack-destination", place]
        subprocess.run(command, check=True, capture_output=True, text=True)
        (packed,) = Path(place).glob("*.tgz")
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(packed) as archive:
            for name, target in FILES.items():
                member = archive.extractfile(name)
                assert member is not None
                (folder / target).write_bytes(member.read())


if __name__ == "__main__":
    fetch(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
