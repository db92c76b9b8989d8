"""2048 on tensors: one player, tiles that appear by chance, points as the reward (Gabriele Cirulli
2014).

A tile is its exponent: 0 an empty cell, 1 the tile 2, 11 the tile 2048. A move slides four lines of
four tiles towards one side, and a table says what becomes of a line and what it pays.

Chance: each state carries the key of its next tile, a number of 32 bits that a hash turns into a
cell, a tile and the next key. So a step is a function of its arguments, alike on every device,
whatever the neighbours in the batch, and a game can be replayed from its first position and its
actions. Keys are drawn from the generator that `starts` gets. A search must not know the tile that
will come, so it plays with keys of its own (`reseed`).
"""

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .base import Game, finished, square_symmetries, where

UNFINISHED, NO_MOVES, TRUNCATED = range(3)
UP, RIGHT, DOWN, LEFT = range(4)  # the actions, numbered as OpenSpiel numbers them
EXPONENTS = 18  # 0 to 17: no larger tile than 2^17 can be made on 16 cells
MASK32 = 2**32 - 1
TILE_BITS = 5
# Of a packed position: tiles in its first word, and tiles that share the second with the key.
FIRST_TILES = 12
LAST_TILES = 4


@dataclass(frozen=True)
class Twenty48State:
    """B positions, each before its player's move."""

    tiles: Tensor  # int64 [B, 16], exponents, row after row
    score: Tensor  # int64 [B], the points so far: what every merge made
    key: Tensor  # int64 [B], 32 bits that the next tile follows from
    legal: Tensor  # bool [B, 4], the moves that change something
    plies_played: Tensor  # int64 [B], plies since this game's own start; the cap counts these
    current_player: Tensor  # int64 [B], zeros
    terminated: Tensor  # bool [B], no move is left
    truncated: Tensor  # bool [B], stopped at the ply cap
    rewards: Tensor  # float32 [B, 1], what the last ply paid
    ending: Tensor  # int64 [B], index into Twenty48.endings


class Twenty48(Game):
    """The rules, with their tables on one device.

    max_plies: a game that has not ended after this number of plies is truncated.
    """

    name = "2048"
    title = "2048"
    num_players = 1
    player_names = ("Player",)
    num_actions = 4
    observation_shape = (EXPONENTS, 4, 4)
    packed_words = 3
    endings = ("unfinished", "no_moves", "truncated")
    start_shares: Mapping[str, float] = {"standard": 1.0}
    discount = 0.997
    self_play_plies = 20_000
    sampling_plies = 1  # the tiles vary the games
    td_lambda = 0.5  # longer targets take in more of what chance did (LOG.md, 2026-11-29)
    chance = True
    score_limit = 100_000.0
    milestones = (512, 1024, 2048)

    def __init__(self, max_plies: int = 20_000, device: torch.device | str = "cpu"):
        self.max_plies = max_plies
        self.device = torch.device(device)
        self._squares = square_symmetries(4).to(self.device)  # which cell comes to each cell
        self.action_images = _action_images().to(self.device)
        self._slides = _slides().to(self.device)
        self._moves = self._slides >= 0  # whether a line moves
        board = torch.arange(16, device=self.device).view(4, 4)
        # [4, 16]: of each action the cells line after line, each line from the side that it slides
        # to
        self._cells = torch.stack(
            [way.flatten() for way in (board.t(), board.flip(1), board.t().flip(1), board)]
        )
        self._back = self._cells.argsort(1)  # the inverse
        self._powers = (EXPONENTS ** torch.arange(4)).to(self.device)  # MPS rounds such powers
        self._shifts = TILE_BITS * torch.arange(16, device=self.device) % (TILE_BITS * FIRST_TILES)
        self._planes = torch.arange(EXPONENTS, device=self.device).view(1, -1, 1)

    def init(self, batch_size: int) -> Twenty48State:
        """`batch_size` boards with two tiles each, the same ones every time."""
        return self._first(torch.arange(batch_size, device=self.device))

    def step(self, state: Twenty48State, action: Tensor) -> Twenty48State:
        """Slide to the side `action` int64 [B], legal in its row; then a tile appears. Finished
        games stay as they are.

        The tile is 2 in nine cases of ten, else 4, in an empty cell, all of them equally likely.
        """
        moved = self.afterstate(state, action)
        tiles, key = _spawn(moved.tiles, moved.key)
        after = replace(moved, tiles=tiles, key=key, plies_played=state.plies_played + 1)
        after = self._settled(after)
        return where(finished(state), state, after)

    def afterstate(self, state: Twenty48State, action: Tensor) -> Twenty48State:
        """The part of a step of unfinished games that knows no chance: the tiles moved and paid
        for, none added. `legal` is not kept up.
        """
        tiles, gained, _ = self.slide(state.tiles, action)
        paid = gained.float().unsqueeze(1)
        return replace(state, tiles=tiles, score=state.score + gained, rewards=paid)

    def slide(self, tiles: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """`tiles` int64 [B, 16] slid to the sides `action` [B], the points of it int64 [B], and
        bool [B], whether anything moved."""
        lines = tiles.gather(1, self._cells[action]).view(-1, 4, 4)
        found = self._slides[(lines * self._powers).sum(2)]
        moved = found >= 0
        slid = torch.where(moved.unsqueeze(2), self._unpack_tiles(found, 4), lines)
        gained = (found.clamp(min=0) >> (4 * TILE_BITS)).sum(1)
        return slid.flatten(1).gather(1, self._back[action]), gained, moved.any(1)

    def reseed(self, state: Twenty48State, numbers: Tensor) -> Twenty48State:
        """The same positions with other chance, one for each of `numbers` int64 [B] from 0 up to
        2**32.
        """
        return replace(state, key=_mixed(state.key ^ _mixed(numbers)))

    def legal_action_mask(self, state: Twenty48State) -> Tensor:
        """bool [B, 4]: the sides to which something moves; none in a finished game without
        moves.
        """
        return state.legal

    def observe(self, state: Twenty48State) -> Tensor:
        """float32 [B, 18, 4, 4]: a plane for empty cells and one for each tile, ones where it
        is.
        """
        planes = state.tiles.unsqueeze(1) == self._planes
        return planes.float().view(-1, *self.observation_shape)

    def pack(self, state: Twenty48State) -> Tensor:
        """int64 [B, 3]: five bits a tile, the key of the next tile, the score. Inverse:
        `unpack`.
        """
        words = (state.tiles << self._shifts).split((FIRST_TILES, LAST_TILES), 1)
        second = words[1].sum(1) | (state.key << (TILE_BITS * (LAST_TILES)))
        return torch.stack((words[0].sum(1), second, state.score), 1)

    def unpack(self, packed: Tensor) -> Twenty48State:
        """The states of `pack`'s words int64 [B, 3], each as a fresh game from there."""
        first, second, score = packed.unbind(1)
        words = self._unpack_tiles(first, FIRST_TILES), self._unpack_tiles(second, LAST_TILES)
        tiles = torch.cat(words, 1)
        return self._state(tiles, score, (second >> (TILE_BITS * LAST_TILES)) & MASK32)

    def augment(self, packed: Tensor, chance: Tensor) -> tuple[Tensor, Tensor]:
        """`packed` int64 [B, 3] with each board turned and mirrored in one of the eight ways, all
        equally likely.

        chance: float32 [B] in [0, 1). Also int64 [B]: which row of `action_images` a position's
        actions follow.
        """
        image = (chance * len(self.action_images)).long()
        state = self.unpack(packed)
        return self.pack(replace(state, tiles=state.tiles.gather(1, self._squares[image]))), image

    def starts(self, count: int, kind: str, generator: torch.Generator) -> Twenty48State:
        """`count` start positions of the only kind, "standard": two tiles on an empty board, 2 or
        4.

        `generator` is a CPU generator; all chance of these games follows from it.
        """
        return self._first(torch.randint(MASK32, (count,), generator=generator).to(self.device))

    def reached(self, state: Twenty48State) -> Tensor:
        """bool [B, 3]: whether the largest tile is at least each of `milestones`."""
        largest = 2 ** state.tiles.amax(1, keepdim=True)
        return largest >= torch.tensor(self.milestones, device=self.device)

    def to_text(self, state: Twenty48State) -> list[str]:
        """Each row as four lines of tiles, a point for an empty cell, and a line with the score."""
        texts = []
        for tiles, score in zip(state.tiles.tolist(), state.score.tolist()):
            cells = "".join(f"{2**tile if tile else '.':>6}" for tile in tiles)
            rows = [cells[start : start + 24] for start in range(0, 96, 24)]
            texts.append("\n".join([*rows, f"score {score}"]))
        return texts

    def _unpack_tiles(self, word: Tensor, count: int) -> Tensor:
        """int64 [..., count]: the tiles in the low bits of `word` [...]."""
        return (word.unsqueeze(-1) >> self._shifts[:count]) & (2**TILE_BITS - 1)

    def _first(self, numbers: Tensor) -> Twenty48State:
        tiles = torch.zeros(len(numbers), 16, dtype=torch.int64, device=self.device)
        key = _mixed(numbers)
        for _ in range(2):
            tiles, key = _spawn(tiles, key)
        return self._state(tiles, torch.zeros_like(numbers), key)

    def _state(self, tiles: Tensor, score: Tensor, key: Tensor) -> Twenty48State:
        """Fresh games from these positions."""
        zero = torch.zeros_like(score)
        rewards = zero.float().unsqueeze(1)
        no = zero.bool()
        legal = no.unsqueeze(1)
        return self._settled(
            Twenty48State(tiles, score, key, legal, zero, zero, no, no, rewards, zero)
        )

    def _settled(self, state: Twenty48State) -> Twenty48State:
        """`state` with everything that follows from its tiles and plies."""
        lines = (state.tiles[:, self._cells].view(-1, 4, 4, 4) * self._powers).sum(3)
        legal = self._moves[lines].any(2)
        stuck = ~legal.any(1)
        capped = ~stuck & (state.plies_played >= self.max_plies)
        ending = torch.where(stuck, NO_MOVES, torch.where(capped, TRUNCATED, UNFINISHED))
        return replace(state, legal=legal, terminated=stuck, truncated=capped, ending=ending)


def _mixed(number: Tensor) -> Tensor:
    """A permutation of the numbers of 32 bits that leaves no pattern (Chris Wellons' hash
    prospector, "lowbias32" as TheIronBorn improved it). In int64 no product overflows, so every
    device computes it alike."""
    number = (number + 0x9E3779B9) & MASK32
    number = ((number ^ (number >> 16)) * 0x21F0AAAD) & MASK32
    number = ((number ^ (number >> 15)) * 0x735A2D97) & MASK32
    return number ^ (number >> 15)


def _spawn(tiles: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """`tiles` [B, 16] with one more tile, and the next keys [B]. A full board stays as it is."""
    place = _mixed(key)
    size = _mixed(key ^ MASK32)
    empty = tiles == 0
    chosen = (place * empty.sum(1)) >> 32
    here = empty & (empty.cumsum(1) == chosen.unsqueeze(1) + 1)
    tile = torch.where(size % 10 == 0, 2, 1)
    return tiles + here * tile.unsqueeze(1), _mixed(place ^ size)


@functools.cache
def _slides() -> Tensor:
    """int64 [18^4]: what becomes of each line that slides to its first cell, -1 if nothing moves.

    A line's number is the sum of its tiles times 18^place. The low 20 bits of an entry are the new
    tiles, five bits each, the rest is what the merges pay.
    """
    lines = itertools.product(range(EXPONENTS), repeat=4)  # the last place first
    return torch.tensor([_slide(line[::-1]) for line in lines])


def _slide(line: tuple[int, ...]) -> int:
    """A line's entry in the table. A tile merges once a slide, those nearest the side first."""
    after = []
    paid = 0
    merges = False  # whether the last of `after` would merge with its like
    for tile in filter(None, line):
        if merges and tile == after[-1]:
            after[-1] += 1
            paid += 2 ** after[-1]
            merges = False
        else:
            after.append(tile)
            merges = tile < EXPONENTS - 1  # two of the largest stay as they are
    after += [0] * (4 - len(after))
    if after == list(line):
        return -1
    tiles = sum(tile << (TILE_BITS * place) for place, tile in enumerate(after))
    return tiles | (paid << (4 * TILE_BITS))


def _action_images() -> Tensor:
    """int64 [8, 4], what each action becomes in each symmetry. A quarter turn to the left makes
    left of up.
    """
    actions = torch.arange(4)
    return torch.stack([(way - turns) % 4 for way in (actions, -actions) for turns in range(4)])
