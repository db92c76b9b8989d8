"""A network as a NIR file fires as the network does, in a reader of our own and in other
simulators.

The whole count: CHESSNN_FULL=1 python -m pytest -s tests/test_nir.py, or for any run
python tools/nir_readers.py RUN.
"""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from chessnn_colab.errors import ConfigError
from chessnn_colab.export import export_network, nir_bytes
from chessnn_colab.network import actor_copy, build_network
from chessnn_colab.runs.networks import load_network, shipped_files
from chessnn_colab.spikes import spike_counts

from .counts import full
from .small_run import CONFIG, TICTACTOE, make_run
from .test_event_driven import positions, strong, with_ties

nir = pytest.importorskip("nir", reason="nir is not here to write the file")
from .nir_reader import play  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
import nir_readers  # noqa: E402

HARD = replace(CONFIG, steps=4, levels=1, reset="hard")
SHIPPED = str(shipped_files()[-1])


@pytest.fixture(scope="module", params=[8, 1], ids=["8-levels", "hard-reset"])
def exported(request, tmp_path_factory):
    """A network and its NIR file: the shipped one, or one of a hard reset."""
    folder = tmp_path_factory.mktemp("exported")
    run = SHIPPED if request.param == 8 else make_run(folder / "run", (0,), "chess", HARD)
    return load_network(run, device="cpu")[0], export_network(run, str(folder / "network.nir"))


def written(network, folder: Path):
    """The graph of the file of a network that is in no run."""
    path = folder / "network.nir"
    path.write_bytes(nir_bytes(network, {}))
    return nir.read(path)


def spikes_of(played: dict[str, torch.Tensor], layer: str) -> torch.Tensor:
    """[T, B, ...]: the spikes of a layer's nodes, which are numbered from 1, together."""
    return sum(spikes for name, spikes in played.items() if name.rpartition(".")[0] == layer)


@pytest.mark.parametrize("levels", [8, 1, 3])
def test_a_reader_agrees_in_every_spike_in_float64(tmp_path, levels):
    """Of the shipped network on 1,000 positions, and of small ones of another game."""
    small = replace(TICTACTOE, levels=levels)
    run = SHIPPED if levels == 8 else make_run(tmp_path / "run", (0, 1), "tictactoe", small)
    network, iteration = load_network(run, device="cpu")
    observation = positions(full(48, 1000))[:, : network.config.planes]
    observation = observation[..., : network.config.height, : network.config.width]
    graph = nir.read(export_network(run, str(tmp_path / "network.nir")))
    for batch in observation.split(250):
        played = play(graph, batch.double(), 1)
        for layer, spikes in spike_counts(actor_copy(network, torch.float64), batch).items():
            assert torch.equal(spikes_of(played, layer), spikes.double()), layer
            assert 0 < spikes.mean() < levels, layer
        logits = actor_copy(network)(batch).prior_logits
        answer = played["output_policy"][0].flatten(1).float()
        torch.testing.assert_close(answer, logits, atol=1e-5, rtol=1e-5)
    metadata = graph.metadata
    assert (metadata["iteration"], metadata["steps"]) == (str(iteration), 1)
    for name, tensor in network.value.state_dict().items():
        assert torch.equal(torch.from_numpy(metadata["value"][name]), tensor), name


def test_a_tie_below_an_even_number_fires_one_spike_less(tmp_path):
    """NIR fires above a threshold and not at it; the network rounds such a tie up."""
    network, observation = with_ties(), positions(32)
    played = play(written(network, tmp_path), observation.double(), 1)
    currents, fired = played["stem"][0], spikes_of(played, "blocks.0.neurons1")[0]
    rounded = currents.round().clamp(0, 8)
    missing = rounded - fired
    assert torch.equal(missing == 1, (currents % 2 == 1.5) & (currents > 0) & (currents < 8))
    assert torch.equal(missing == 0, missing != 1) and (missing == 1).any()


def test_a_hard_reset_fires_the_same_spikes_in_every_step(tmp_path):
    network, observation = strong(HARD), positions(48)
    graph = written(network, tmp_path)
    assert graph.metadata["steps"] == 4
    played = play(graph, observation.double(), 4)
    soft = build_network(replace(HARD, reset="soft"), "cpu").eval()
    soft.load_state_dict(network.state_dict())
    ours, without = (spike_counts(each, observation) for each in (network, soft))
    for layer, spikes in ours.items():
        theirs = spikes_of(played, layer)
        assert (theirs != spikes).double().mean() < 1e-5, layer  # float32 here, float64 there
        assert (without[layer] != spikes).double().mean() > 1e-3, layer


@pytest.mark.parametrize("simulator", nir_readers.READERS)
def test_another_simulator_chooses_the_same_move(exported, simulator):
    network, path = exported
    if network.config.levels > 1 and simulator == "norse":
        pytest.skip("Norse runs a node before all that it reads has run")
    for needed in ("nirtorch", simulator):
        pytest.importorskip(needed, reason=f"{needed} is not here to open the file")
    opened, count = nir_readers.open_with(simulator, path), full(100, 1000)
    share, apart = nir_readers.compare(network, opened, *nir_readers.sample(count))
    steps = network.config.steps
    print(f"{simulator}, {steps} steps: the same move in {share:.1%} of {count} positions")
    assert share >= nir_readers.LEAST and apart < 1e-3


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"activation": "relu"}, "activation='relu', steps=1, reset='soft': NIR has no ReLU"),
        ({"activation": "clipped"}, "no ReLU and no clipping"),
        ({"steps": 2}, "no neuron that fires more than once in one of several steps"),
        ({"steps": 4, "levels": 1}, "or keeps what a spike leaves; expected spikes in steps=1, or"),
    ],
)
def test_what_nir_has_no_nodes_for_is_refused_in_one_sentence(changes, words):
    with pytest.raises(ConfigError, match=words):
        nir_bytes(build_network(replace(CONFIG, **changes), "cpu"), {})
