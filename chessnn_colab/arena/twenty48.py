"""The players of 2048 that need no network: they look at the tiles."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..games.twenty48 import DOWN, LEFT, RIGHT, UP, Twenty48, Twenty48State
from .game import ArenaGame
from .players import Player, RandomPlayer

CORNER_ORDER = (DOWN, LEFT, RIGHT, UP)  # keeps the large tiles in the lower left corner
FOUR_SHARE = 0.1  # of the tiles that appear
# The cells from the snake's head to its tail: from the corner that CORNER_ORDER keeps, to and fro,
# up the board.
SNAKE = (12, 13, 14, 15, 11, 10, 9, 8, 4, 5, 6, 7, 3, 2, 1, 0)
SNAKE_BASE = 4.0  # a tile on the next cell of the snake is worth this factor less


class GreedyPlayer(Player):
    """The move that pays most at once; of equal ones the first of CORNER_ORDER."""

    name = "greedy"

    def __init__(self, game: Twenty48):
        self.game = game

    def choose(
        self, state: Twenty48State, generator: torch.Generator, boards: Sequence[Any] = ()
    ) -> Tensor:
        order = torch.tensor(CORNER_ORDER, device=self.game.device)
        return order[self.values(state.tiles)[:, order].argmax(1)]

    def values(self, tiles: Tensor) -> Tensor:
        """[B, 4]: what each move of `tiles` [B, 16] is worth; -1 where it moves nothing."""
        _, gained, legal = every_slide(self.game, tiles)
        return torch.where(legal, gained, -1)


class ExpectimaxPlayer(GreedyPlayer):
    """The move that is best on average over every tile that may appear, `depth` moves deep. At the
    end the tiles count by how well they lie along the snake.

    Depth 2 looks at up to 480 boards per move, depth 3 at some 50,000.
    """

    name = "expectimax"
    depth = 2

    def __init__(self, game: Twenty48):
        super().__init__(game)
        weights = [SNAKE_BASE ** -SNAKE.index(cell) for cell in range(16)]
        self.weights = torch.tensor(weights, device=game.device)
        cells = torch.eye(16, dtype=torch.int64, device=game.device)
        self.chances = torch.cat((cells, 2 * cells))  # [32, 16], every tile in every cell

    def values(self, tiles: Tensor) -> Tensor:
        return self._values(tiles, self.depth)

    def _values(self, tiles: Tensor, depth: int) -> Tensor:
        """float32 [B, 4]: `values`, this number of moves deep."""
        after, _, legal = every_slide(self.game, tiles)
        worth = tiles.new_full(legal.shape, -1.0, dtype=torch.float32)
        worth[legal] = self._after(after[legal], depth)
        return worth

    def _after(self, tiles: Tensor, depth: int) -> Tensor:
        """float32 [N]: value of afterstates [N, 16], before the random tile."""
        if depth == 1:
            return (torch.where(tiles > 0, 2.0**tiles, 0.0) * self.weights).sum(1)
        # Tiles in empty cells.
        rows, chance = (tiles.unsqueeze(1) * self.chances == 0).all(2).nonzero(as_tuple=True)
        replies = self._values(tiles[rows] + self.chances[chance], depth - 1)
        best = replies.amax(1).clamp(min=0)  # 0 where no move is left
        share = torch.where(chance < 16, 1 - FOUR_SHARE, FOUR_SHARE)
        empty = (tiles == 0).sum(1).clamp(min=1)
        return best.new_zeros(len(tiles)).index_add(0, rows, best * share) / empty


class SnakePlayer(ExpectimaxPlayer):
    """The move after which the tiles lie best along the snake."""

    name = "snake"
    depth = 1


def every_slide(game: Twenty48, tiles: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """int64 [B, 4, 16], int64 [B, 4] and bool [B, 4]: what Twenty48.slide returns for each of the
    four moves.
    """
    actions = torch.arange(4, device=tiles.device).repeat(len(tiles))
    slid, gained, moved = game.slide(tiles.repeat_interleave(4, 0), actions)
    return slid.view(-1, 4, 16), gained.view(-1, 4), moved.view(-1, 4)


TWENTY48 = ArenaGame(
    game="2048",
    players={
        "random": RandomPlayer,
        "greedy": GreedyPlayer,
        "snake": SnakePlayer,
        "expectimax": ExpectimaxPlayer,
    },
)
