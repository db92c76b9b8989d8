"""What a game is to search, self-play, replay and learner, and what can be done with any State.

The names are pgx's (https://github.com/sotetsuk/pgx): ``init``, ``step``, ``observe``, ``legal_action_mask``,
``current_player``, ``terminated``, ``truncated``, ``rewards``.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol, Sequence, TypeVar

import torch
from torch import Tensor


class State(Protocol):
    """A batch of positions: a frozen dataclass of tensors, batch first, all on one device."""

    current_player: Tensor  # int64 [B], whose turn it is, 0 for the first mover
    terminated: Tensor  # bool [B], ended by the rules
    truncated: Tensor  # bool [B], stopped at the ply cap
    rewards: Tensor  # float32 [B, num_players], what the last ply paid each player
    ending: Tensor  # int64 [B], index into the game's `endings`


class Game(Protocol):
    """Rules on tensors. A finished game stays finished: a step leaves it as it is."""

    num_actions: int
    num_players: int
    observation_shape: tuple[int, int, int]
    packed_words: int
    endings: tuple[str, ...]
    action_images: Tensor  # int64 [symmetries, num_actions], what each action becomes in each symmetry

    def init(self, batch_size: int) -> Any: ...
    def step(self, state: Any, action: Tensor) -> Any: ...
    def legal_action_mask(self, state: Any) -> Tensor: ...
    def legal_actions(self, state: Any) -> tuple[Tensor, Tensor]: ...  # rows and actions, as nonzero() of the mask
    def observe(self, state: Any) -> Tensor: ...
    def pack(self, state: Any) -> Tensor: ...
    def unpack(self, packed: Tensor) -> Any: ...
    def augment(self, packed: Tensor, chance: Tensor) -> tuple[Tensor, Tensor]: ...
    def truncation_value(self, state: Any) -> Tensor: ...
    def starts(self, count: int, kind: str, generator: torch.Generator) -> Any: ...


S = TypeVar("S")


def finished(state: State) -> Tensor:
    """bool [B]: ended by the rules or stopped at the cap."""
    return state.terminated | state.truncated


def select(state: S, index: Tensor | slice) -> S:
    """The rows `index` (int64 [N], bool [B] or a slice) of every field."""
    if isinstance(index, Tensor) and index.dtype == torch.int64:
        return map_fields(lambda field: field.index_select(0, index), state)
    return map_fields(lambda field: field[index], state)


def where(condition: Tensor, state: S, other: S) -> S:
    """`state` in the rows where `condition` (bool [B]) holds, `other` elsewhere."""

    def pick(field: Tensor, alternative: Tensor) -> Tensor:
        return torch.where(condition.view(-1, *[1] * (field.dim() - 1)), field, alternative)

    return map_fields(pick, state, other)


def concatenate(states: Sequence[S]) -> S:
    """The rows of all `states`, one batch after the other."""
    return map_fields(lambda *fields: torch.cat(fields), *states)


def to_device(state: S, device: torch.device | str) -> S:
    """The same positions on another device."""
    return map_fields(lambda field: field.to(device), state)


def map_fields(function, *states: S) -> S:
    """A state whose fields are `function` of the same fields of `states`."""
    return type(states[0])(
        **{
            field.name: function(*(getattr(state, field.name) for state in states))
            for field in dataclasses.fields(states[0])
        }
    )
