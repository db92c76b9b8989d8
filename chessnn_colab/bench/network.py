"""The actors' network alone, beside the same network written plainly with SpikingJelly."""

import copy
import functools
import statistics

from spikingjelly.activation_based import functional, neuron, surrogate
from torch import nn

from ..clock import seconds_per_call
from ..layers import TAU, SpikingLayer
from ..network import SpikingNetwork, actor_copy
from .setting import Figures, Setting, random_positions

BATCH = 512
TURNS = 5


def bench_network(setting: Setting) -> Figures:
    """The actors' network, policy and value, beside `plain_network` in float32.

    The two take turns on BATCH positions of random play, or setting.boards; the figures are
    medians over TURNS turns. SpikingJelly's neurons refuse some devices (MPS), where there is no
    comparison.
    """
    network = setting.network()
    batch = setting.boards or BATCH
    observation = setting.game.observe(random_positions(setting.game, batch))
    candidates = {"": actor_copy(network, setting.dtype)}
    if not network.portable:
        candidates["plain_"] = plain_network(network)
    rates = {name: [] for name in candidates}
    for _ in range(TURNS):
        for name, candidate in candidates.items():
            call = functools.partial(candidate, observation)
            seconds = seconds_per_call(call, setting.device, setting.seconds / TURNS / 2)
            rates[name].append(batch / seconds)
    figures = {f"{name}evaluations_per_second": statistics.median(rates[name]) for name in rates}
    if not network.portable:
        speedups = [ours / plain for ours, plain in zip(rates[""], rates["plain_"])]
        figures["speedup"] = statistics.median(speedups)
    return figures


def plain_network(network: SpikingNetwork) -> SpikingNetwork:
    """The same weights in the layers one would write down first: SpikingJelly's neurons, batch norm
    left as it is.
    """
    functional.reset_net(network)  # a graph that training left behind cannot be copied
    plain = copy.deepcopy(network).eval()
    for module in plain.modules():
        for name, layer in list(module.named_children()):
            if isinstance(layer, SpikingLayer):
                setattr(module, name, plain_neurons(network))
    return plain


def plain_neurons(network: SpikingNetwork) -> nn.Module:
    """SpikingJelly's neuron for the network's configuration, many steps per call, each call from
    rest.
    """
    levels = network.config.levels
    if levels > 1:
        count = surrogate.MultiLevelSpikeCount(levels)
        node = neuron.ILIFNode(TAU, 1.0, count, detach_reset=True, step_mode="m")
    else:
        node = neuron.LIFNode(
            TAU,
            False,
            1.0,
            network.neurons.node.v_reset,
            surrogate.ATan(),
            detach_reset=True,
            step_mode="m",
        )
    node.register_forward_pre_hook(lambda *_: node.reset())
    return node
