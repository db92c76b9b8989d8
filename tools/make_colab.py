"""Write dist/run_all.ipynb: the train notebook with the package packed inside it, and the cell that
measures a machine. It is one file to carry anywhere.

python tools/make_colab.py [FILE]. Needs nothing but Python. The notebook unpacks the package beside
itself and installs what is missing; it asks for no repository.
"""

import base64
import hashlib
import io
import json
import lzma
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = {"__pycache__", ".DS_Store"}
NETWORKS = ".safetensors"  # four fifths of the package's size; this notebook trains its own

# The cell that takes the place of the one tagged "fetch". A zip file without compression is
# compressed as a whole: half the size. Runs stand outside the folder, so that a newer notebook goes
# on with them.
UNPACK = """# @title Get the code: it is packed in this cell
import base64
import io
import lzma
import sys
import zipfile
from pathlib import Path


def unpack(packed):
    folder = Path("chessnn_colab-{digest}").resolve()
    zipfile.ZipFile(io.BytesIO(lzma.decompress(base64.b64decode(packed)))).extractall(folder)
    sys.path.insert(0, str(folder))


unpack("{packed}")
"""


def packed_package(root: Path = ROOT) -> bytes:
    """The package with its data but for its networks, requirements.txt and the licence; the same
    bytes each time.
    """
    files = [
        path
        for path in (root / "chessnn_colab").rglob("*")
        if path.is_file() and path.suffix != NETWORKS and not LEFT_OUT & {*path.parts}
    ]
    files += [root / "requirements.txt", root / "LICENSE"]
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as packed:
        for path in sorted(files):
            packed.writestr(zipfile.ZipInfo(path.relative_to(root).as_posix()), path.read_bytes())
    return lzma.compress(archive.getvalue(), preset=9)


def run_all_notebook(root: Path = ROOT) -> str:
    """The text of the notebook that carries the package."""
    notebook = json.loads((root / "notebooks" / "train.ipynb").read_text(encoding="utf-8"))
    packed = packed_package(root)
    digest = hashlib.sha256(packed).hexdigest()[:12]
    for cell in notebook["cells"]:
        if "fetch" in cell["metadata"].get("tags", []):
            cell["source"] = UNPACK.format(
                digest=digest, packed=base64.b64encode(packed).decode()
            ).rstrip("\n")
    notebook["cells"][-1:-1] = measuring_cells(root)  # before "What next"
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def measuring_cells(root: Path) -> list[dict]:
    """What measures a machine in the evaluate notebook: where this file is opened there is a GPU."""
    notebook = json.loads((root / "notebooks" / "evaluate.ipynb").read_text(encoding="utf-8"))
    titles = "## Measure this machine", "# @title Measure this machine"
    return [cell for cell in notebook["cells"] if cell["source"][0].strip() in titles]


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist" / "run_all.ipynb"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(run_all_notebook(), encoding="utf-8")
    print(
        f"{target}: {target.stat().st_size / 1000:,.0f} kB. Upload it to Colab or Kaggle, or open it in an empty folder"
    )
