"""A game between a person and an opponent: what clicks, typed moves and buttons do, and what the
person is told.
"""

import time
from collections.abc import Sequence

from ...arena.opponent import NetworkOpponent, Opponent
from ...errors import ChessnnError, NotationError
from ...text import counted
from .. import opinion_html
from ..board import WidgetOrHtml
from ..drawing import Drawing
from ..picture import picture_html
from ..squares import Arrow
from .controls import Controls, moves_html

LONG_THOUGHT = 0.3  # seconds: only after a thought of this length or more may a click have waited
QUEUED = 0.12  # seconds after such a thought in which clicks were made before the answer was seen
HINT_COLOUR = "#b45309"
GAME_OVER = "This game is over. Start a new one, or press Take back."
UNCHANGED = "The game stands as it was."
TRY_AGAIN = "Load or New game tries again."
TAKEN_BACK = "Your last move is taken back; nothing else is lost."


class PlayBoard(WidgetOrHtml):
    """A game between a person and an opponent; made by `play_widget`.

    `drawing` is the game so far. Only *New game* and *Load* replace it.
    """

    script = "keys.js"
    silent = (
        "The kernel does not answer: it is busy, or it was restarted. After a restart, copy the "
        "game as text from beside the board, run the first cells (to fetch, to install, to choose) "
        "and this one, choose your side, paste the text and press Load."
    )

    def __init__(self, drawing: Drawing, opponent: Opponent, human: int):
        self.drawing = drawing
        self.opponent = opponent
        self._name = opponent.name[:1].upper() + opponent.name[1:]
        self.human = human  # the person's side from the next game on
        self._seat = human  # the person's side in this game
        self.chosen: tuple[int, ...] = ()  # squares clicked of a move that needs more clicks
        self.resigned = False
        self._written = ""  # the game as text, as it was last put into its box
        self._asked = []  # actions among which the person has to choose
        self._hint = []
        self._opinions = []  # the network's, of each position so far
        self._looked = ""  # HTML of what the network's last search tried
        self._thought_until = 0.0  # when the opponent's last thought ended
        self._thought_for = 0.0
        self._failure = ""
        self._network = opponent if isinstance(opponent, NetworkOpponent) else None
        self.controls = Controls(self, self._network.evaluations if self._network else None)
        self.controls.squares.turn(human == 1)
        self.widget = self.controls.widget
        self.scope = self.controls.squares.scope
        self._begin("Your move.")

    # What a person does

    def click(self, square: int) -> None:
        """A square was clicked: the first click of a move, one that completes it, or one that means
        nothing here.
        """
        if not self._may_move():
            return None
        if self._asked and square == self.chosen[-1]:  # the second half of a double click
            return self.redraw()
        if self.chosen == (square,):
            self.chosen = ()
            return self._draw("Your move.")
        clicks = self.drawing.clicks()
        for path in ((*self.chosen, square), (square,)):
            if any(each[: len(path)] == path for each, _ in clicks):
                return self._clicked(path, [action for each, action in clicks if each == path])
        reason = self.drawing.refusal.format(self.drawing.names[square])
        if self.chosen:
            began = self.drawing.names[self.chosen[0]]
            reason = f"{began} to {self.drawing.names[square]} is not legal"
        self.chosen = ()
        self._draw(f"{reason}. {UNCHANGED}")

    def enter(self, text: str) -> bool:
        """Play a move that was typed, and the answer. A wrong one shows a message and returns
        False.
        """
        if not self._may_move():
            return False
        try:
            action = self.drawing.parse(text)
        except NotationError as error:
            self._draw(f"{error}. {UNCHANGED}", self._asked)
            return False
        self.controls.entry.value = ""
        self._play(action)
        return True

    def choose(self, number: int) -> None:
        """Play one of the actions that share the squares that were clicked, such as a promotion to
        a knight.
        """
        if number < len(self._asked):
            self._play(self._asked[number])

    def take_back(self) -> None:
        """Undo the person's last move and the answer to it. After the person has resigned, go on
        instead, with the side that is chosen now.
        """
        if self.resigned:
            return self._begin("The game goes on. Your move.")
        moves = len(self.drawing.actions)
        own_first = (self.drawing.turn + moves) % 2 == self.human  # this side made the first move
        needed = 1 if own_first else 2
        if moves < needed:
            return self._draw("There is no move of yours to take back.")
        self.drawing.pop()
        if self.drawing.turn != self.human:
            self.drawing.pop()
        del self._opinions[len(self.drawing.actions) + 1 :]
        self._begin("Taken back. Your move.")

    def new_game(self) -> None:
        """Begin again from the usual start position."""
        self.drawing.reset()
        self._opinions = []
        self._begin("Your move.")

    def resign(self) -> None:
        """Give the game up."""
        if self.over:
            return self._draw(GAME_OVER)
        self.resigned = True
        self.chosen = ()
        self._draw(f"You resigned: {self.drawing.players[1 - self.human]} won.")

    def load(self, text: str) -> bool:
        """Go on from a position or a game as text: FEN or PGN in chess. A wrong one changes
        nothing.
        """
        try:
            self.drawing.load(text)
        except NotationError as error:
            self._draw(f"{error}. {UNCHANGED}")
            return False
        self._opinions = []
        self._begin("Loaded. Your move.")
        return True

    def hint(self) -> None:
        """Mark the move that the opponent would play in the person's place."""
        if not self._may_move():
            return None
        self.chosen = ()
        action = self._think(f"{self._name} is looking for a hint.")
        if action is None:
            return self._draw(self._failure)
        path = next(path for path, each in self.drawing.clicks() if each == action)
        self._hint = [Arrow(path, 0.8, HINT_COLOUR)]
        self._draw(f"Hint: {self.drawing.move_text(action)}. Your move.")

    def play_as(self, player: int) -> None:
        """Change sides; once a game is over, for the next one. If it is now the opponent's turn, it
        moves.
        """
        self.human = player
        self.controls.squares.turn(player == 1)
        if self.over:
            return self._draw(self.controls.said)
        self._begin("Your move.")

    def set_evaluations(self, number: int) -> None:
        """The opponent's strength: how many positions it looks at per move. Raises ConfigError."""
        if self._network is not None:
            self._network.evaluations = number
            said = f"It now looks at {counted(number, 'position')} per move."
            self._draw(self.controls.said if self.over else said, self._asked)

    def turn_board(self) -> None:
        """Show the board from the other side."""
        self.controls.squares.turn(not self.controls.squares.turned)
        self.redraw()

    # What follows from it

    @property
    def over(self) -> bool:
        """Whether the game has ended."""
        return self.resigned or bool(self.drawing.ending())

    def waited(self) -> bool:
        """True if this click or key was queued while the opponent was thinking and so was meant for
        the previous position.
        """
        now = time.monotonic()
        if self._thought_for < LONG_THOUGHT or now - self._thought_until > QUEUED:
            return False
        self._thought_until = now
        self._draw("You did that while the opponent was thinking, so it was ignored. Your move.")
        return True

    def _may_move(self) -> bool:
        if self.waited():
            return False
        if self.over:
            self._draw(GAME_OVER)
            return False
        if self.drawing.turn != self.human:
            self._draw("It is not your turn yet.")
            return False
        return True

    def _clicked(self, path: tuple[int, ...], actions: list[int]) -> None:
        """The squares of `path` were clicked, which is all that `actions` need."""
        if len(actions) == 1:
            return self._play(actions[0])
        self.chosen = path
        self._draw("Promote to what?" if actions else "Now click where it goes.", asked=actions)

    def _play(self, action: int) -> None:
        self.drawing.push(action)
        self._begin("Your move.", own_move=True)

    def _begin(self, message: str, own_move: bool = False) -> None:
        """Go on from a changed position: the opponent moves if it is its turn."""
        self.chosen = ()
        self._hint = []
        self._looked = ""
        self.resigned = False
        self._seat = self.human
        if not self.drawing.ending() and self.drawing.turn != self.human:
            again = TAKEN_BACK if own_move else TRY_AGAIN
            action = self._think(f"{self._name} is thinking.", again, own_move)
            if action is None:
                return self._draw(self._failure)
            self.drawing.push(action)
        self._draw(self.drawing.ending() or message)

    def _think(self, message: str, again: str = UNCHANGED, undo: bool = False) -> int | None:
        """The opponent's action here. Without one: None, `_failure` says why and then `again`, and
        with `undo` a move is taken back.
        """
        self._draw(message, busy=True)
        started = time.monotonic()
        try:
            action = self.opponent.choose(self.drawing.state(), self.drawing.board)
            if action not in [each for _, each in self.drawing.clicks()]:
                raise NotationError(f"its answer {action} is not a legal action")
            if self._network is not None:
                tried = self._network.candidates()
                self._looked = opinion_html.candidates_html(self.drawing, tried)
            return action
        except BaseException as error:
            stopped = isinstance(error, KeyboardInterrupt)
            why = "was stopped" if stopped else f"failed ({type(error).__name__}: {error})"
            self._failure = f"{self._name} {why}. {again}"
            if undo:
                self.drawing.pop()
            if not isinstance(error, ChessnnError):
                self._draw(self._failure)
                raise
            return None
        finally:
            self._thought_until = time.monotonic()
            self._thought_for = self._thought_until - started

    def redraw(self) -> None:
        """Draw again, with or without what the network thinks, as the switch beside the board
        says.
        """
        self._draw(self.controls.said, self._asked)

    def _draw(self, message: str, asked: Sequence[int] = (), busy: bool = False) -> None:
        self._asked = list(asked)
        arrows, told = ([], None) if busy else self._thoughts()
        self.controls.draw(self, message, [*arrows, *self._hint], told, busy)
        self.controls.ask([self.drawing.choice(action) for action in asked])
        text = self.text()
        if text != self._written:  # else the box may hold what a person has pasted
            self._written = text
            self.controls.game_text.value = text

    def text(self) -> str:
        """The game so far as text that `load` reads: PGN in chess."""
        names = ["you", self.opponent.name]
        if self._seat:
            names.reverse()
        return self.drawing.text(names, self._seat if self.resigned else None)

    def _thoughts(self) -> tuple[list[Arrow], str]:
        """Arrows, and what stands beside the board: the likeliest moves, the value now and over
        time.
        """
        if self._network is None or not self.controls.switch.value:
            return [], ""
        self._opinions += opinion_html.opinions(self.drawing, self._network, len(self._opinions))
        players = self.drawing.players
        newest = self._opinions[-1]
        told = opinion_html.value_html(players, newest)
        told += opinion_html.top_moves_html(self.drawing, newest) + self._looked
        told += opinion_html.graph_html(players, [opinion.expected for opinion in self._opinions])
        return opinion_html.arrows(self.drawing, newest), told

    def static_html(self) -> str:
        """The position and the moves so far."""
        return f"{picture_html(self.drawing, self.human == 1)}<p>{moves_html(self.drawing)}</p>"

    def __repr__(self) -> str:
        return f"PlayBoard({self.drawing.game.name}, {len(self.drawing.actions)} plies)"
