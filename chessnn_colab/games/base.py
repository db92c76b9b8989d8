"""The Game protocol, and functions that work on the states of any game.

The names are pgx's (https://github.com/sotetsuk/pgx): ``init``, ``step``, ``observe``,
``legal_action_mask``, ``current_player``, ``terminated``, ``truncated``, ``rewards``.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from ..graphs import map_tensors

# On a GPU the number of actions to try must not depend on the positions. So this many are tried in
# each, and any wins beyond them are missed. In chess a position of random play has 3 moves that may
# give check, 41 at most.
MOST_CANDIDATES = 48


class Game(Protocol):
    """Rules on tensors. A finished game stays finished: a step leaves it as it is.

    A state is a batch of positions: a frozen dataclass of tensors, batch first, all on one device.
    Every game's states have

    - `current_player`: int64 [B], whose turn it is, 0 for the first mover;
    - `terminated`: bool [B], ended by the rules;
    - `truncated`: bool [B], stopped at the ply cap;
    - `rewards`: float32 [B, num_players], what the last ply paid each player; in a game
      for two -1, 0 or 1;
    - `ending`: int64 [B], index into the game's `endings`;
    - `plies_played`: int64 [B], plies since this game's own start; the cap counts these.

    Two players move in turn; to pass is an action. Where num_actions is a multiple of the squares,
    action = plane * squares + square. A game for one player has the start kind "standard".
    forced_wins also uses `forcing_actions`, where a game has it.
    """

    name: str  # in games.registry
    title: str  # the name as people write it
    num_players: int  # 1 or 2
    player_names: tuple[str, ...]  # of each player, the first mover first
    num_actions: int
    # How far the actions of each policy plane lead, see NetworkConfig.
    jumps: tuple[tuple[int, int], ...] = ()
    observation_shape: tuple[int, int, int]  # planes, height and width of the board
    packed_words: int
    endings: tuple[str, ...]  # kinds of ending; the first is "unfinished", the last "truncated"
    # Kind of start position -> its share of self-play's games; the shares sum to 1.
    start_shares: Mapping[str, float]
    # Plies after which self-play stops a game. A run may set this (`max_plies`).
    self_play_plies: int
    sampling_plies: int  # from 1: a game samples its moves until a random ply below this
    # What a win is worth to the search one ply later, below 1 for two players; of points, in
    # targets too.
    discount: float
    # 1: value targets are the outcome alone; below 1: mixed with estimates of the next plies. These
    # are guessed_chances, or what the search said in a game without them.
    td_lambda: float = 1.0
    # Positions of a run after which value targets use what the search said instead of
    # guessed_chances. A run may set this; by default that is never.
    bootstrap_after: float = math.inf
    bootstrap_lambda: float = 0.95  # td_lambda after these positions
    chance: bool = False  # whether a step depends on chance too (see ChanceGame)
    # The highest return that the value head can express; 0: games are won, drawn or lost.
    score_limit: float = 0.0
    max_plies: int  # plies after which this object stops a game
    device: torch.device
    # int64 [symmetries, num_actions]: what each action becomes in each symmetry.
    action_images: Tensor

    def init(self, batch_size: int) -> Any:
        """`batch_size` standard start positions."""
        ...

    def step(self, state: Any, action: Tensor) -> Any:
        """Play `action` int64 [B], legal in its row."""
        ...

    def legal_action_mask(self, state: Any) -> Tensor:
        """bool [B, num_actions]."""
        ...

    def legal_actions(self, state: Any) -> tuple[Tensor, Tensor]:
        """Rows int64 [n] and actions int64 [n] that legal_action_mask allows: row after row,
        actions ascending. The host has to learn n, so this waits for a GPU.
        """
        rows, actions = self.legal_action_mask(state).nonzero(as_tuple=True)
        return rows, actions

    def winning_candidates(self, state: Any, static: bool = False) -> tuple[Tensor, Tensor]:
        """Of `legal_actions`, those among which a win at once must be: here all of them. static:
        the MOST_CANDIDATES likeliest of each row (see top_candidates).
        """
        if static:
            return top_candidates(self.legal_action_mask(state).float())
        return self.legal_actions(state)

    def observe(self, state: Any) -> Tensor:
        """float32 [B, *observation_shape], zeros and ones: what the network sees."""
        ...

    def pack(self, state: Any) -> Tensor:
        """int64 [B, packed_words]: all that observe, legal_action_mask and augment need."""
        ...

    def unpack(self, packed: Tensor) -> Any:
        """The inverse of `pack`."""
        ...

    def augment(self, packed: Tensor, chance: Tensor) -> tuple[Tensor, Tensor]:
        """`packed` with each row in a symmetry picked by chance float32 [B] in [0, 1); and int64
        [B], that symmetry's row in `action_images`."""
        ...

    def guessed_chances(self, state: Any) -> Tensor | None:
        """float32 [B, 3]: the mover's chances to win, draw and lose, guessed without a network;
        None in a game without such a guess.
        """
        return None

    def starts(self, count: int, kind: str, generator: torch.Generator) -> Any:
        """`count` start positions of one of the kinds in `start_shares`. `generator` is a CPU
        generator.
        """
        ...

    def to_text(self, state: Any) -> list[str]:
        """A drawing of each row, as lines of text."""
        ...


class ChanceGame(Game, Protocol):
    """Rules in which chance has a part. A state carries the key of its next chance, so that `step`
    needs no generator: it does the same on every device and beside any neighbours, and a game can
    be replayed from its start."""

    def reseed(self, state: Any, numbers: Tensor) -> Any:
        """The same positions with other chance to come, which follows from `numbers` int64 [B], 0
        to 2**32 - 1, too.
        """
        ...

    def afterstate(self, state: Any, action: Tensor) -> Any:
        """The states after `action` [B], before chance does the rest of the step."""
        ...


class PointsGame(Game, Protocol):
    """Rules of a game that pays points. A state has `score`, int64 [B]: the points so far."""

    milestones: tuple[int, ...]  # what the best of a position can reach, such as tiles

    def reached(self, state: Any) -> Tensor:
        """bool [B, number of milestones]."""
        ...


def finished(state: Any) -> Tensor:
    """bool [B]: ended by the rules or stopped at the cap."""
    return state.terminated | state.truncated


def select(state: Any, index: Tensor | slice) -> Any:
    """The rows `index` (int64 [N], bool [B] or a slice) of every field."""
    if isinstance(index, Tensor) and index.dtype == torch.int64:
        return map_tensors(lambda field: field.index_select(0, index), state)
    return map_tensors(lambda field: field[index], state)


def where(condition: Tensor, state: Any, other: Any) -> Any:
    """`state` in the rows where `condition` (bool [B]) holds, `other` elsewhere."""

    def pick(field: Tensor, alternative: Tensor) -> Tensor:
        return torch.where(condition.view(-1, *[1] * (field.dim() - 1)), field, alternative)

    return map_tensors(pick, state, other)


def concatenate(states: Sequence[Any]) -> Any:
    """The rows of all `states`, one batch after the other."""
    return map_tensors(lambda *fields: torch.cat(fields), *states)


def start_positions(game: Game, count: int, generator: torch.Generator) -> Any:
    """`count` start positions in random order: of each kind its share, of the last kind the rest.

    `generator` is a CPU generator.
    """
    shares = game.start_shares
    *kinds, rest = shares
    numbers = {}
    left = count
    for kind in kinds:
        numbers[kind] = min(round(shares[kind] * count), left)
        left -= numbers[kind]
    numbers[rest] = left
    states = concatenate(
        [game.starts(number, kind, generator) for kind, number in numbers.items() if number]
    )
    order = torch.randperm(count, generator=generator).to(game.device)
    return select(states, order)


def random_actions(mask: Tensor, generator: torch.Generator) -> Tensor:
    """int64 [B]: in each row an action of `mask` bool [B, A], all of them equally likely."""
    noise = torch.rand(mask.shape, generator=generator, device=generator.device)
    return torch.where(mask, noise.to(mask.device), -1.0).argmax(1)


def random_plies(game: Game, count: int, most: int, generator: torch.Generator) -> Any:
    """`count` unfinished games, each 1 to `most` uniformly random moves after the standard start.

    A move that would end the game is not played. `generator` is a CPU generator.
    """
    state = game.init(count)
    lengths = torch.randint(1, most + 1, (count,), generator=generator).to(game.device)
    for played in range(most):
        after = game.step(state, random_actions(game.legal_action_mask(state), generator))
        state = where((lengths > played) & ~finished(after), after, state)
    return state


def top_candidates(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The MOST_CANDIDATES actions with the highest `scores` float32 [B, A] in each row, in the form
    of `legal_actions`. Where fewer are above 0, the row's first one stands again.
    """
    found, actions = scores.topk(min(MOST_CANDIDATES, scores.shape[1]), dim=1)
    actions = torch.where(found > 0, actions, actions[:, :1])
    rows = torch.arange(len(scores), device=scores.device)
    return rows.repeat_interleave(actions.shape[1]), actions.flatten()


def winning_actions(game: Game, state: Any, static: bool = False) -> Tensor:
    """int64 [B]: a legal action that wins at once by the rules, -1 in rows without one.

    It steps what the game's `winning_candidates` says is enough, in the form of `legal_actions`.
    static: no size follows from the positions; of more than MOST_CANDIDATES in a row a win may be
    missed, and in a finished game the answer means nothing.
    """
    rows, actions = game.winning_candidates(state, static)
    none = torch.full_like(state.current_player, -1)
    if not len(rows):
        return none
    after = game.step(select(state, rows), actions)
    reward = after.rewards.gather(1, state.current_player[rows].unsqueeze(1)).squeeze(1)
    found = torch.where(after.terminated & (reward > 0), actions, -1)
    return _highest(none, rows, found)


def forced_wins(game: Game, state: Any) -> tuple[Tensor, Tensor]:
    """Actions that win by the rules, whatever the other player does: one per row, and the plies
    until the win.

    The action, int64 [B], is -1 in rows where none is found. The plies, int64 [B], are 1 where it
    wins at once, and 3 where it is one of the game's `forcing_actions` (in the form of
    `legal_actions`) after which every reply allows a win at once. A game without such a list has
    the first kind alone.
    """
    wins = winning_actions(game, state)
    plies = torch.ones_like(wins)
    if not hasattr(game, "forcing_actions"):
        return wins, plies
    waiting = ((wins < 0) & ~finished(state)).nonzero().squeeze(1)
    rows, actions = game.forcing_actions(  # pyright: ignore[reportAttributeAccessIssue]
        select(state, waiting)
    )
    rows = waiting[rows]
    after = game.step(select(state, rows), actions)
    replying, replies = game.legal_actions(after)
    counts = torch.bincount(replying, minlength=len(rows))
    first = counts.cumsum(0) - counts
    forced = ~finished(after)
    # One more reply to each action that has not failed yet.
    while len(open_rows := (forced & (counts > 0)).nonzero().squeeze(1)):
        counts[open_rows] -= 1
        reply = replies[first[open_rows] + counts[open_rows]]
        answered = game.step(select(after, open_rows), reply)
        forced[open_rows] = winning_actions(game, answered) >= 0
    plies[waiting] = 3
    return _highest(wins, rows, torch.where(forced, actions, -1)), plies


def _highest(actions: Tensor, rows: Tensor, found: Tensor) -> Tensor:
    """int64 [B]: the highest of `actions` [B] and of `found` [n] in its rows [n].

    It is computed as int32, because MPS has no maximum of int64 by index.
    """
    highest = actions.int()
    return highest.scatter_reduce(0, rows, found.int(), "amax").long()


class Moves(NamedTuple):
    """A game from its first position to its last."""

    start: Any  # a state with one row
    actions: Sequence[int]
    ending: int  # index into Game.endings
    result: int  # +1 when the first player won, -1 when the second did, else 0
    last: Any = None  # the state after the actions; None: they have to be played to know it


def move_list(game: Game, moves: Moves, **headers: str) -> str:
    """A game as plain text: headers, start, actions, the last position (see registry.game_text). A
    header "Ending" takes the place of the game's own.

    The start is in the words of `pack`, with the key of its chance, so that the game can be played
    again.
    """
    start, actions, ending, result, last = moves
    if last is None:
        last = start
        for action in actions:
            last = game.step(last, torch.tensor([action], device=game.device))
    winner = f", {game.player_names[0 if result > 0 else 1]} wins" if result else ", no winner"
    ended_by = headers.pop("Ending", game.endings[ending])
    return "\n".join(
        [
            f"Game: {game.name}",
            *[f"{name}: {value}" for name, value in headers.items()],
            f"Start: {' '.join(map(str, game.pack(start)[0].tolist()))}",
            f"Ending: {ended_by}{winner if game.num_players > 1 else ''}",
            f"Actions: {' '.join(map(str, actions))}",
            *game.to_text(last),
        ]
    )


def square_symmetries(size: int) -> Tensor:
    """int64 [8, size * size]: a square board's cells, turned by quarters, and mirrored and turned
    by quarters.
    """
    board = torch.arange(size**2).view(size, size)
    return torch.stack(
        [
            torch.rot90(side, turns).flatten()
            for side in (board, board.flip(1))
            for turns in range(4)
        ]
    )
