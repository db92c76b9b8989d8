"""Make tests/golden/mctx.npz: what mctx's Gumbel search does on small random games, for
tests/test_tree.py. Below the root it chooses as chessnn_colab/tree.py does, not as Gumbel MuZero.

Only this file needs jax and mctx:  pip install jax mctx;  python tools/mctx_golden.py

A game is a table: from state s action a leads to next_state[s, a] with reward[s, a] and discount[s,
a]; a state has value[s] and logits[s, :]. A discount of 0 ends a line, a negative one hands the
move to the other player. Rows start from different states; at the root and below it actions are
missing.
"""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import mctx
import numpy as np
from mctx._src import action_selection

STATES, ACTIONS, ROWS = 150, 12, 6
EXPLORATION = 1.0  # tree.EXPLORATION
MISSING = -1e9  # the logit of an action that is not there
# num_simulations, max_num_considered_actions, value_scale, gumbel_scale, max_depth
CASES = [
    (1, 16, 0.1, 1.0, 1),
    (8, 4, 0.1, 1.0, 8),
    (16, 16, 0.1, 1.0, 16),
    (32, 4, 0.3, 1.0, 32),
    (32, 16, 0.1, 0.0, 32),
    (50, 8, 1.0, 1.0, 50),
    (32, 4, 0.3, 1.0, 3),
    (24, 2, 1.0, 1.0, 2),
]


def tables(seed: int) -> dict[str, np.ndarray]:
    """One random game: tables [STATES, ACTIONS] and [STATES], and for each row its root [ROWS] and
    invalid actions.
    """
    rng = np.random.default_rng(seed)
    ends = rng.random((STATES, ACTIONS)) < 0.1
    missing = (rng.random((STATES, ACTIONS)) < 0.3) & (np.arange(ACTIONS) > 0)
    root_state = rng.choice(STATES, ROWS, replace=False)
    most = np.array([12, 12, 9, 5, 2, 1])[:, None]  # columns in which a row's root may have actions
    return {
        "next_state": rng.integers(0, STATES, (STATES, ACTIONS)),
        "reward": (ends * rng.choice([-1.0, 0.0, 1.0], (STATES, ACTIONS))).astype(np.float32),
        "discount": (~ends * rng.choice([-1.0, -0.99, 0.9], (STATES, ACTIONS))).astype(np.float32),
        "value": rng.uniform(-1, 1, STATES).astype(np.float32),
        "logits": np.where(missing, MISSING, 2 * rng.standard_normal((STATES, ACTIONS))).astype(
            np.float32
        ),
        "root_state": root_state,
        "invalid": missing[root_state] | (np.arange(ACTIONS) >= most),
    }


def interior(
    key: jax.Array, tree: mctx.Tree, node: jax.Array, depth: jax.Array, qtransform: object
) -> jax.Array:
    """The action to try below the root, in one row's tree: AlphaZero's rule, in units of 1 or of the
    spread of what the node's actions are worth.
    """
    del key, depth, qtransform
    visits, logits = tree.children_visits[node], tree.children_prior_logits[node]
    worth = jnp.where(visits > 0, tree.qvalues(node), tree.node_values[node])
    bonus = jax.nn.softmax(logits) * jnp.sqrt(tree.node_visits[node]) / (1 + visits)
    scores = worth + EXPLORATION * jnp.maximum(worth.max() - worth.min(), 1) * bonus
    return jnp.where(logits > MISSING / 2, scores, -jnp.inf).argmax()


def search(
    game: dict[str, np.ndarray],
    simulations: int,
    considered: int,
    value_scale: float,
    gumbel_scale: float,
    max_depth: int,
    seed: int,
) -> dict[str, np.ndarray]:
    """What mctx does from every root of `game`: its noise, choice and weights [ROWS, ACTIONS], and
    its tree.
    """
    table = {name: jnp.asarray(array) for name, array in game.items()}

    def recurrent_fn(params, key, action, state):
        after = table["next_state"][state, action]
        return mctx.RecurrentFnOutput(
            reward=table["reward"][state, action],
            discount=table["discount"][state, action],
            prior_logits=table["logits"][after],
            value=table["value"][after],
        ), after

    state = table["root_state"]
    root = mctx.RootFnOutput(
        prior_logits=table["logits"][state], value=table["value"][state], embedding=state
    )
    key = jax.random.PRNGKey(seed)
    output = mctx.gumbel_muzero_policy(
        None,
        key,
        root,
        recurrent_fn,
        simulations,
        invalid_actions=table["invalid"],
        max_depth=max_depth,
        max_num_considered_actions=considered,
        gumbel_scale=gumbel_scale,
        qtransform=lambda tree, node: mctx.qtransform_completed_by_mix_value(
            tree, node, value_scale=value_scale
        ),
    )
    tree = output.search_tree
    gumbel = gumbel_scale * jax.random.gumbel(jax.random.split(key)[1], root.prior_logits.shape)
    assert jnp.array_equal(gumbel, tree.extra_data.root_gumbel), (
        "this mctx draws its noise in another way"
    )
    return {
        "gumbel": gumbel,
        "action": output.action,
        "action_weights": output.action_weights,
        "visits": tree.children_visits,
        "children": tree.children_index,
        "node_values": tree.node_values,
    }


def main() -> None:
    """Search every case's game and write what went in and what came out."""
    action_selection.gumbel_muzero_interior_action_selection = interior
    arrays = {"cases": np.array(CASES)}
    for number, case in enumerate(CASES):
        game = tables(number)
        for name, array in {**game, **search(game, *case, seed=number)}.items():
            arrays[f"{number}.{name}"] = np.asarray(array)
    path = Path(__file__).parent.parent / "tests" / "golden" / "mctx.npz"
    path.parent.mkdir(exist_ok=True)
    np.savez_compressed(path, **arrays)
    print(f"{path}: {path.stat().st_size:,} bytes, mctx {mctx.__version__}, jax {jax.__version__}")


if __name__ == "__main__":
    main()
