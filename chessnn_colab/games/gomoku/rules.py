"""Gomoku on tensors: five in a row on a board of any size from 5 to 20, many games at once.

Cells are numbered row after row from the top left corner; the action is the cell. Black moves
first. `Gomoku` is the game on 15x15 where five or more in a row win; `variant` makes the same rules
for other sizes, and those in which only exactly five win.
"""

import functools
import re
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ...errors import ConfigError
from ..base import Game, finished, square_symmetries, top_candidates, where
from .lines import FIVE, LineTables
from .notation import LETTERS
from .state import BLACK, EMPTY, ENDINGS, WHITE, GomokuState

DEFAULT_SIZE = 15
SMALLEST = 5
LARGEST = 20
PLANES = 5
MARKS = ".XO"  # an empty cell, Black, White
WORD = 63  # cells in one word: the sign bit stays free
MAX_RANDOM_PLIES = 8  # of a start position: four stones each, so neither side can have won
# cells: how far from the centre the stones of a start position lie, as a standard deviation
SPREAD = 2.0


class Gomoku(Game):
    """The rules of one board size, with their tables on one device.

    max_plies: a game that has not ended after this number of plies is truncated; None: as many as
    there are cells.
    """

    name = "gomoku"
    title = "gomoku on 15x15"
    size = DEFAULT_SIZE  # rows and columns
    line = FIVE  # stones in a row that win
    exact = False  # True: only exactly so many in a row win; False: these or more
    num_players = 2
    player_names = ("Black", "White")
    num_actions = DEFAULT_SIZE**2
    observation_shape = (PLANES, DEFAULT_SIZE, DEFAULT_SIZE)
    packed_words = 2 * -(-(DEFAULT_SIZE**2) // WORD)
    endings = ENDINGS
    start_shares: Mapping[str, float] = {"random-plies": 0.7, "standard": 0.3}
    discount = 0.99  # the quicker of two wins is worth more
    self_play_plies = DEFAULT_SIZE**2
    sampling_plies = 12

    def __init__(self, max_plies: int | None = None, device: torch.device | str = "cpu"):
        self.max_plies = max_plies or self.num_actions
        self.device = torch.device(device)
        images = square_symmetries(self.size)
        self.action_images = images.to(self.device)
        # Of the symmetries: the cell whose stone comes to each place. Sorted on the CPU: MPS sorts
        # more than 256 whole numbers wrongly (pytorch#155560).
        self._sources = images.argsort(1).to(self.device)
        self.lines = LineTables(self.size, self.exact, self.device, self.line)
        self._cells = torch.arange(self.num_actions, device=self.device)
        self._bits = torch.arange(WORD, device=self.device)

    def init(self, batch_size: int) -> GomokuState:
        """The empty board, `batch_size` times."""
        shape = batch_size, self.num_actions
        return self._fresh(torch.zeros(shape, dtype=torch.int8, device=self.device))

    def step(self, state: GomokuState, action: Tensor) -> GomokuState:
        """Play `action` int64 [B], an empty cell of its board; rows of finished games stay as they
        are.
        """
        over = finished(state)
        played = (self._cells == action.unsqueeze(1)) & ~over.unsqueeze(1)
        colour = (state.current_player + BLACK).to(torch.int8).unsqueeze(1)
        board = torch.where(played, colour, state.board)
        won = self.lines.wins(board == colour, action)
        after = self._state(board, state.plies_played + 1, 1 - state.current_player, won)
        return where(over, state, after)

    def legal_action_mask(self, state: GomokuState) -> Tensor:
        """bool [B, size * size]: the empty cells, those of a finished game too."""
        return state.board == EMPTY

    def winning_candidates(self, state: GomokuState, static: bool = False) -> tuple[Tensor, Tensor]:
        """Of `legal_actions`, those that complete five. static: these first, then others (see
        top_candidates).
        """
        fives = self.lines.completes(self.stones(state)[:, 0]) & (state.board == EMPTY)
        if static:
            return top_candidates(fives.float() - state.board)
        rows, actions = fives.nonzero(as_tuple=True)
        return rows, actions

    def observe(self, state: GomokuState) -> Tensor:
        """float32 [B, 5, size, size]: zeros and ones.

        The planes: the mover's stones; the opponent's; the empty cells where the mover would
        complete five; those where the opponent would; and all ones, which show where the board
        ends, because a convolution sees zeros beyond it. Like chess's attacked squares, the two
        planes of fives shorten training.
        """
        stones = self.stones(state)
        fives = self.lines.completes(stones.flatten(0, 1)).view_as(stones) & (
            state.board == EMPTY
        ).unsqueeze(1)
        planes = torch.cat((stones, fives, torch.ones_like(stones[:, :1])), 1)
        return planes.float().view(-1, *self.observation_shape)

    def stones(self, state: GomokuState) -> Tensor:
        """bool [B, 2, size * size]: the mover's stones, and the opponent's."""
        mover = (state.current_player + BLACK).to(torch.int8).view(-1, 1, 1)
        return state.board.unsqueeze(1) == torch.cat((mover, BLACK + WHITE - mover), 1)

    def pack(self, state: GomokuState) -> Tensor:
        """int64 [B, packed_words]: a bit for each cell, first Black's stones and then White's, 63
        to a word.

        The stones tell all the rest but the plies of this game. Inverse: `unpack`.
        """
        return self._pack_board(state.board)

    def unpack(self, packed: Tensor) -> GomokuState:
        """The states of `pack`'s words int64 [B, packed_words], each as a fresh game from there."""
        return self._fresh(self._unpack_board(packed))

    def augment(self, packed: Tensor, chance: Tensor) -> tuple[Tensor, Tensor]:
        """`packed` int64 [B, packed_words] with each board turned and mirrored in one of the eight
        ways, all equally likely.

        chance: float32 [B] in [0, 1). Also int64 [B]: which row of `action_images` a position's
        actions follow.
        """
        image = (chance * len(self.action_images)).long()
        board = self._unpack_board(packed).gather(1, self._sources[image])
        return self._pack_board(board), image

    def starts(self, count: int, kind: str, generator: torch.Generator) -> GomokuState:
        """`count` start positions: "standard", or "random-plies": 1 to MAX_RANDOM_PLIES random
        stones near the centre. `generator` is a CPU generator."""
        state = self.init(count)
        if kind == "standard":
            return state
        lengths = torch.randint(1, MAX_RANDOM_PLIES + 1, (count,), generator=generator).to(
            self.device
        )
        noise = torch.empty(count, self.num_actions).exponential_(generator=generator)
        # Draws without replacement, on the CPU as `_sources`.
        ranks = (_log_density(self.size) - noise.log()).argsort(1, descending=True).argsort(1)
        ranks = ranks.to(self.device)
        stones = torch.where(ranks % 2 == 0, BLACK, WHITE).to(torch.int8)
        return self._fresh(torch.where(ranks < lengths.unsqueeze(1), stones, EMPTY))

    def to_text(self, state: GomokuState) -> list[str]:
        """Each row as a board of X (Black), O (White) and points, with the names of rows and
        columns.
        """
        letters = "   " + " ".join(LETTERS[: self.size])
        texts = []
        for stones in state.board.view(-1, self.size, self.size).tolist():
            lines = [" ".join(MARKS[mark] for mark in line) for line in stones]
            rows = [f"{self.size - row:2} {line}" for row, line in enumerate(lines)]
            texts.append("\n".join([*rows, letters]))
        return texts

    def after(self, lines: Sequence[Sequence[int]]) -> GomokuState:
        """The position after each of `lines` from the empty board, a row each, as fresh games: the
        cap on plies does not count the moves of a line. Each line is legal moves of an unfinished
        game.
        """
        board = torch.zeros(len(lines), self.num_actions, dtype=torch.int8)
        for row, line in enumerate(lines):
            board[row, list(line[::2])] = BLACK
            board[row, list(line[1::2])] = WHITE
        return self._fresh(board.to(self.device))

    def _pack_board(self, board: Tensor) -> Tensor:
        """int64 [B, packed_words] of int8 [B, size * size]."""
        stones = torch.stack((board == BLACK, board == WHITE), 1)
        filled = stones.new_zeros(len(stones), 2, self.packed_words // 2 * WORD)
        filled[:, :, : self.num_actions] = stones
        return (filled.view(-1, self.packed_words, WORD).long() << self._bits).sum(2)

    def _unpack_board(self, packed: Tensor) -> Tensor:
        """int8 [B, size * size] of `pack`'s words."""
        bits = (
            ((packed.unsqueeze(2) >> self._bits) & 1)
            .to(torch.int8)
            .view(len(packed), 2, -1)[:, :, : self.num_actions]
        )
        return bits[:, 0] * BLACK + bits[:, 1] * WHITE

    def _fresh(self, board: Tensor) -> GomokuState:
        """Games that begin with `board` int8 [B, size * size]. Only the side that moved last can
        have won.
        """
        player = (board != EMPTY).sum(1) & 1
        mover_before = (WHITE - player).to(torch.int8).unsqueeze(1)
        stones = board == mover_before
        won = (self.lines.completes(stones) & stones).any(1)
        return self._state(board, torch.zeros_like(player), player, won)

    def _state(
        self, board: Tensor, plies_played: Tensor, player: Tensor, won: Tensor
    ) -> GomokuState:
        """won: bool [B], whether the opponent of `player` has just completed a line."""
        full = (board != EMPTY).all(1)
        ending = torch.where(plies_played >= self.max_plies, 3, 0)  # index into `endings`
        ending = torch.where(won, 1, torch.where(full, 2, ending))
        first_reward = torch.where(won, 2 * player - 1, 0).float()
        rewards = torch.stack((first_reward, -first_reward), 1)
        terminated = (ending == 1) | (ending == 2)
        return GomokuState(board, plies_played, player, terminated, ending == 3, rewards, ending)


def variant(options: Sequence[str]) -> type[Gomoku]:
    """The rules for the words after the colons of a name: "9", "15" and "exact", or "exact" alone.

    Raises ConfigError for a size outside SMALLEST to LARGEST and for other words.
    """
    name = ":".join(options)
    words = re.fullmatch(r"([0-9]{1,9})?((?:^|:)exact)?", name)
    if not words or not name:
        raise ConfigError(
            f"unknown game 'gomoku:{name!s:.60}': expected gomoku, gomoku:SIZE or "
            "gomoku:SIZE:exact, such as gomoku:9"
        )
    size = int(words[1] or DEFAULT_SIZE)
    if not SMALLEST <= size <= LARGEST:
        raise ConfigError(f"gomoku on {size}x{size}: expected a size from {SMALLEST} to {LARGEST}")
    return _variant(size, bool(words[2]))


@functools.cache
def _variant(size: int, exact: bool) -> type[Gomoku]:
    """One class for each size and rule, with the one name that runs and checkpoints know it by."""
    if (size, exact) == (DEFAULT_SIZE, False):
        return Gomoku
    cells = size**2
    more = {
        "name": f"gomoku:{size}" + ":exact" * exact,
        "title": f"gomoku on {size}x{size}" + ", exactly five" * exact,
        "size": size,
        "exact": exact,
        "num_actions": cells,
        "observation_shape": (PLANES, size, size),
        "packed_words": 2 * -(-cells // WORD),
        "self_play_plies": cells,
    }
    return type("Gomoku", (Gomoku,), more)


def _log_density(size: int) -> Tensor:
    """float32 [size * size]: the logarithm of how likely a random stone is on each cell, a bell
    around the centre.
    """
    place = torch.arange(size, dtype=torch.float32) - (size - 1) / 2
    return -((place.unsqueeze(1) ** 2 + place**2) / (2 * SPREAD**2)).flatten()
