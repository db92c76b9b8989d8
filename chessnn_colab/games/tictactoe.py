"""Tic-tac-toe on tensors: the smallest game, whose true values are known, so that learning can be
checked against them.

Squares are numbered 0 to 8, row after row; the action is the square. A position is 18 bits of one
word: the mover's own stones in bits 0 to 8, the opponent's in bits 9 to 17.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from .base import Game, finished, line_outcome, random_plies, square_symmetries, where

# An octal digit per row of the board.
LINES = (0o007, 0o070, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124)
BOARD = 0o777
MAX_RANDOM_PLIES = 6


@dataclass(frozen=True)
class TicTacToeState:
    """B positions, each from its mover's point of view."""

    stones: Tensor  # int64 [B], 18 bits: the mover's own, then the opponent's
    plies_played: Tensor  # int64 [B], plies since this game's own start; the cap counts these
    current_player: Tensor  # int64 [B], 0 X, 1 O
    terminated: Tensor  # bool [B], ended by the rules
    truncated: Tensor  # bool [B], stopped at the ply cap
    rewards: Tensor  # float32 [B, 2], +1 and -1 to X and O once somebody has won, else 0
    ending: Tensor  # int64 [B], index into TicTacToe.endings


class TicTacToe(Game):
    """The rules, with their tables on one device.

    max_plies: a game that has not ended after this number of plies is truncated.
    """

    name = "tictactoe"
    title = "tic-tac-toe"
    num_players = 2
    player_names = ("X", "O")
    num_actions = 9
    observation_shape = (3, 3, 3)
    packed_words = 1
    endings = ("unfinished", "three_in_a_row", "board_full", "truncated")
    start_shares: Mapping[str, float] = {"random-plies": 0.8, "standard": 0.2}
    # The quicker of two wins is worth more, and a win 8 plies later still 0.92: far above a draw
    discount = 0.99
    self_play_plies = 9
    sampling_plies = 9

    def __init__(self, max_plies: int = 9, device: torch.device | str = "cpu"):
        self.max_plies = max_plies
        self.device = torch.device(device)
        self.action_images = square_symmetries(3).to(self.device)
        self._bits = torch.arange(18, device=self.device)
        self._opponents_lines = torch.tensor(LINES, device=self.device) << 9

    def init(self, batch_size: int) -> TicTacToeState:
        """The empty board, `batch_size` times."""
        return self.unpack(torch.zeros(batch_size, 1, dtype=torch.int64, device=self.device))

    def step(self, state: TicTacToeState, action: Tensor) -> TicTacToeState:
        """Play `action` int64 [B], legal in its position; rows of finished games stay as they
        are.
        """
        stones = state.stones | (torch.ones_like(action) << action)
        after = self._state((stones >> 9) | ((stones & BOARD) << 9), state.plies_played + 1)
        return where(finished(state), state, after)

    def legal_action_mask(self, state: TicTacToeState) -> Tensor:
        """bool [B, 9]: the empty squares, those of a finished game too."""
        return self._unpack_bits(state.stones | (state.stones >> 9))[:, :9] == 0

    def observe(self, state: TicTacToeState) -> Tensor:
        """float32 [B, 3, 3, 3]: the mover's stones, the opponent's, and all ones, which show where
        the board ends.
        """
        stones = self._unpack_bits(state.stones).to(torch.float32)
        return torch.cat((stones, torch.ones_like(stones[:, :9])), 1).view(
            -1, *self.observation_shape
        )

    def pack(self, state: TicTacToeState) -> Tensor:
        """int64 [B, 1]: the stones, which tell all the rest but the plies of this game. Inverse:
        `unpack`.
        """
        return state.stones.unsqueeze(1)

    def unpack(self, packed: Tensor) -> TicTacToeState:
        """The states of `pack`'s words int64 [B, 1], each as a fresh game from there."""
        return self._state(packed[:, 0], torch.zeros_like(packed[:, 0]))

    def augment(self, packed: Tensor, chance: Tensor) -> tuple[Tensor, Tensor]:
        """`packed` int64 [B, 1] with each board turned and mirrored in one of the eight ways, all
        equally likely.

        chance: float32 [B] in [0, 1). Also int64 [B]: which row of `action_images` a position's
        actions follow.
        """
        image = (chance * len(self.action_images)).to(torch.int64)
        squares = self.action_images[image]
        bits = self._unpack_bits(packed[:, 0]) << torch.cat((squares, squares + 9), 1)
        return bits.sum(1, keepdim=True), image

    def starts(self, count: int, kind: str, generator: torch.Generator) -> TicTacToeState:
        """`count` start positions: "standard", or "random-plies": 1 to MAX_RANDOM_PLIES uniformly
        random moves, without those that would have ended the game. `generator` is a CPU generator.
        """
        if kind == "standard":
            return self.init(count)
        state = random_plies(self, count, MAX_RANDOM_PLIES, generator)
        return self.unpack(self.pack(state))

    def to_text(self, state: TicTacToeState) -> list[str]:
        """Each row as three lines of X, O and points."""
        own, opponents = self._unpack_bits(state.stones).split(9, 1)
        player = state.current_player.unsqueeze(1)
        boards = (own * (1 + player) + opponents * (2 - player)).view(-1, 3, 3).tolist()
        return [
            "\n".join(" ".join(".XO"[mark] for mark in row) for row in board) for board in boards
        ]

    def _unpack_bits(self, stones: Tensor) -> Tensor:
        """int64 [B, 18], zeros and ones."""
        return (stones.unsqueeze(1) >> self._bits) & 1

    def _state(self, stones: Tensor, plies_played: Tensor) -> TicTacToeState:
        """Everything that follows from the stones [B]. Only the opponent, who has just moved, can
        have won.
        """
        count = self._unpack_bits(stones).sum(1)
        player = count & 1
        lost = ((stones.unsqueeze(1) & self._opponents_lines) == self._opponents_lines).any(1)
        outcome = line_outcome(lost, count == 9, plies_played >= self.max_plies, player)
        return TicTacToeState(stones, plies_played, player, *outcome)
