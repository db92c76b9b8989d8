# %% [markdown]
# # The same training on many GPUs, or many machines
#
# `train.ipynb` uses every GPU of its machine by itself: a worker for each. This notebook runs the
# same workers as [Ray](https://docs.ray.io) actors, which may be on other machines too. Here
# there is one machine, and the cluster is simulated: a head and two nodes of one core each, on
# this computer. On a real cluster only the address changes; `docs/cluster.md` has the commands
# for one machine with eight GPUs, for SLURM and for Kubernetes.

# %% cellView="form" jupyter={"source_hidden": true} tags=["fetch"]
# @title Get the code: from the folder around this notebook, or from its repository
import importlib
import subprocess
import sys
from importlib.util import find_spec

REPOSITORY = ""  # `make repository URL=...` sets it

sys.path[:0] = [".", "..", "chessnn-colab"]
if find_spec("chessnn_colab") is None:
    problem = (
        "The package chessnn_colab is not here. Open this notebook in a checkout of the repository. "
        "On Colab or Kaggle upload dist/run_all.ipynb, which `make colab` writes in a checkout."
    )
    if REPOSITORY:
        clone = ["git", "clone", "--quiet", "--depth", "1", REPOSITORY, "chessnn-colab"]
        done = subprocess.run(clone, check=False, stderr=subprocess.PIPE, text=True)
        problem = done.stderr if done.returncode else ""
    if problem:
        raise type("NoCode", (Exception,), {"_render_traceback_": lambda self: [str(self)]})(
            problem
        )
    importlib.invalidate_caches()

# %% cellView="form" jupyter={"source_hidden": true}
# @title Install what is missing, and Ray, which nothing else needs
from chessnn_colab import install_requirements, scroll_to_cell

root = install_requirements(also=["ray>=2.50"])
scroll_to_cell(top=True)

# %% [markdown]
# ## Choose
# Nothing needs to be changed. `address` is the address of a Ray cluster. If this notebook runs
# on a machine of the cluster, write `auto`. If it is empty, the notebook simulates a cluster on
# this computer. `positions_with_a_loss` are played in the section that takes a node away.

# %% tags=["parameters"]
# @title Training { run: "auto" }
minutes = 2  # @param {type:"slider", min:1, max:240, step:1}
address = ""  # @param {type:"string"}
run_folder = "runs/cluster"  # @param {type:"string"}
positions_with_a_loss = 25600  # @param {type:"slider", min:6400, max:102400, step:6400}

# %% [markdown]
# ## A cluster
# The plan is one worker for each GPU, or for each core where there is none.

# %%
from chessnn_colab import join_cluster, plan_cluster

if before := globals().get("pretended"):  # this cell again: the cluster of before ends
    import ray

    ray.shutdown()
    before.shutdown()
pretended, place = None, address
if not address:
    from ray.cluster_utils import Cluster

    pretended = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
    )
    nodes = [pretended.add_node(num_cpus=1) for _ in range(2)]
    place = pretended.address
resources = join_cluster(place)

import ray

for node in ray.nodes():
    print(
        node["NodeManagerAddress"],
        "|",
        {name: count for name, count in node["Resources"].items() if name in ("CPU", "GPU")},
    )
print(plan_cluster(resources))

# %% [markdown]
# ## Train
# The same bars and curves as in `train.ipynb`; only `pool` and `address` are new. Each machine gets
# the new weights once per iteration and sends its games back. The learning is led from here.

# %%
from chessnn_colab import TrainConfig, make_progress, runs, train

run = runs.chosen_run(root, run_folder.strip() or "runs/cluster", "chess")
config = TrainConfig(run=str(run), minutes=minutes, pool="ray", address=place)
for report in train(config, make_progress()):
    pass

# %% [markdown]
# ## Lose a machine
# The next cell removes one node of the simulated cluster, without a warning, while it plays. Its
# share is played again, and the iteration has as many positions as it should have. The lost worker
# waits for its node to come back, and the others go on.

# %%
import dataclasses


class LosesANode:
    """The usual progress, and a node is gone as soon as anybody has played."""

    def __init__(self, progress):
        self.progress, self.lost = progress, False

    def __getattr__(self, name):
        return getattr(self.progress, name)

    def worker_update(self, worker, games, plies):
        if not self.lost and len(nodes) > 1:
            self.lost = True
            pretended.remove_node(nodes.pop(), allow_graceful=False)
        self.progress.worker_update(worker, games, plies)


if pretended is not None:
    again = dataclasses.replace(
        config,
        minutes=None,
        iterations=1,
        positions_per_iteration=positions_with_a_loss,
        sample_reuse=1.0,
    )
    for report in train(again, LosesANode(make_progress())):
        print(f"{report.positions_played:,} positions in iteration {report.iteration}")

# %% [markdown]
# ## Leave
# The run is a folder like any other: look at it with `evaluate.ipynb`, or continue it with
# `train.ipynb`. In both write its name into `run_folder`.

# %%
ray.shutdown()
if pretended is not None:
    pretended.shutdown()
