"""Many small tests share two cores: one torch thread each, here and in the processes they start."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("CHESSNN_UI", "text")
