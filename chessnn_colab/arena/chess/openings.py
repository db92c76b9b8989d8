"""The openings that chess matches start from: a small fixed book of well-known lines.

Each is played twice, with each player once as White, so that neither player is lucky in what it gets. The order is
fixed. It spreads each family evenly over the book, so that a short match has all of them too.
"""

from __future__ import annotations

import chess

from ..result import Opening

_FAMILIES = {
    "open games": """
        Italian Game: e4 e5 Nf3 Nc6 Bc4 Bc5
        Ruy Lopez: e4 e5 Nf3 Nc6 Bb5 a6 Ba4 Nf6
        Petrov Defence: e4 e5 Nf3 Nf6
        King's Gambit: e4 e5 f4
        Scotch Game: e4 e5 Nf3 Nc6 d4 exd4 Nxd4
        Vienna Game: e4 e5 Nc3 Nf6
        Four Knights: e4 e5 Nf3 Nc6 Nc3 Nf6
        Philidor Defence: e4 e5 Nf3 d6 d4
        Ruy Lopez, Berlin Defence: e4 e5 Nf3 Nc6 Bb5 Nf6
        Bishop's Opening: e4 e5 Bc4 Nf6 d3
        Ruy Lopez, Exchange: e4 e5 Nf3 Nc6 Bb5 a6 Bxc6 dxc6
        Ponziani Opening: e4 e5 Nf3 Nc6 c3""",
    "Sicilian": """
        Sicilian Defence: e4 c5
        Sicilian, Najdorf to come: e4 c5 Nf3 d6 d4 cxd4 Nxd4 Nf6
        Sicilian, Alapin: e4 c5 c3 d5
        Sicilian, Taimanov: e4 c5 Nf3 e6 d4 cxd4 Nxd4 Nc6
        Sicilian, Closed: e4 c5 Nc3 Nc6 g3
        Sicilian, Rossolimo: e4 c5 Nf3 Nc6 Bb5
        Sicilian, Open: e4 c5 Nf3 Nc6 d4 cxd4 Nxd4
        Sicilian, Moscow: e4 c5 Nf3 d6 Bb5+""",
    "half-open games": """
        French Defence: e4 e6 d4 d5
        Caro-Kann Defence: e4 c6 d4 d5
        Scandinavian Defence: e4 d5 exd5 Qxd5 Nc3 Qa5
        Pirc Defence: e4 d6 d4 Nf6 Nc3 g6
        French, Winawer: e4 e6 d4 d5 Nc3 Bb4
        Caro-Kann, Advance: e4 c6 d4 d5 e5 Bf5
        Alekhine Defence: e4 Nf6 e5 Nd5
        Modern Defence: e4 g6 d4 Bg7
        French, Tarrasch: e4 e6 d4 d5 Nd2 Nf6
        Caro-Kann, Exchange: e4 c6 d4 d5 exd5 cxd5
        Nimzowitsch Defence: e4 Nc6 d4
        French, Advance: e4 e6 d4 d5 e5 c5""",
    "queen's pawn games": """
        Queen's Gambit Declined: d4 d5 c4 e6
        Slav Defence: d4 d5 c4 c6
        London System: d4 d5 Bf4 Nf6
        Queen's Gambit Accepted: d4 d5 c4 dxc4
        Queen's Gambit, Orthodox: d4 d5 c4 e6 Nc3 Nf6 Bg5 Be7
        Colle System: d4 d5 Nf3 Nf6 e3
        Slav, Main Line to come: d4 d5 c4 c6 Nf3 Nf6
        Tarrasch Defence: d4 d5 c4 e6 Nc3 c5
        Veresov Attack: d4 d5 Nc3 Nf6 Bg5
        Queen's Gambit, Exchange: d4 d5 c4 e6 Nc3 Nf6 cxd5 exd5
        Semi-Slav Defence: d4 d5 c4 c6 Nf3 Nf6 Nc3 e6
        Chigorin Defence: d4 d5 c4 Nc6""",
    "Indian defences": """
        King's Indian Defence: d4 Nf6 c4 g6 Nc3 Bg7 e4 d6
        Nimzo-Indian Defence: d4 Nf6 c4 e6 Nc3 Bb4
        Dutch Defence: d4 f5
        Queen's Indian Defence: d4 Nf6 c4 e6 Nf3 b6
        Benoni Defence: d4 Nf6 c4 c5 d5 e6
        Gruenfeld Defence: d4 Nf6 c4 g6 Nc3 d5
        Trompowsky Attack: d4 Nf6 Bg5
        Catalan Opening: d4 Nf6 c4 e6 g3 d5
        Bogo-Indian Defence: d4 Nf6 c4 e6 Nf3 Bb4+
        Torre Attack: d4 Nf6 Nf3 e6 Bg5
        Old Indian Defence: d4 Nf6 c4 d6
        Dutch, Leningrad: d4 f5 g3 Nf6 Bg2 g6""",
    "flank openings": """
        English, King's English: c4 e5
        Reti Opening: Nf3 d5 c4
        English, Symmetrical: c4 c5
        Bird's Opening: f4 d5
        Nimzo-Larsen Attack: b3 e5
        King's Indian Attack: Nf3 d5 g3
        English, Anglo-Indian: c4 Nf6 Nc3 e6
        Van Geet Opening: Nc3 d5""",
}


def board_after(opening: Opening) -> chess.Board:
    """The position after an opening in SAN, with its moves in the board's past."""
    board = chess.Board()
    for move in opening.moves:
        board.push_san(move)
    return board


def _family(text: str) -> list[Opening]:
    lines = (line.rpartition(": ") for line in text.strip().splitlines())
    return [Opening(name.strip(), tuple(moves.split())) for name, _, moves in lines]


def _in_turn(families: list[list[Opening]]) -> tuple[Opening, ...]:
    """All openings, with each family spread evenly over the book."""
    placed = [((place + 0.5) / len(family), opening) for family in families for place, opening in enumerate(family)]
    return tuple(opening for _, opening in sorted(placed, key=lambda item: item[0]))


BOOK = _in_turn([_family(text) for text in _FAMILIES.values()])
