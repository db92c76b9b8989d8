"""A UCI engine that plays the first legal move, or has the trouble that its option "Trouble" names
at its second go.
"""

import os
import sys
import time

import chess

trouble, board, gos = "", chess.Board(), 0
for line in sys.stdin:
    words = line.split()
    if not words:
        continue
    if words[0] == "uci":
        print("id name Fake\noption name Trouble type string default\nuciok", flush=True)
    elif words[0] == "isready":
        print("readyok", flush=True)
    elif words[0] == "setoption":
        trouble = words[-1]
    elif words[0] == "position":
        moves = words[words.index("moves") + 1 :] if "moves" in words else []
        fen = " ".join(words[2:8]) if words[1] == "fen" else chess.STARTING_FEN
        board = chess.Board(fen)
        for move in moves:
            board.push_uci(move)
    elif words[0] == "go":
        gos += 1
        if gos > 1 and trouble == "crash":
            os._exit(3)
        if gos > 1 and trouble == "silence":
            time.sleep(600)
        troubles = {"illegal": "a1a8", "null": "0000"} if gos > 1 else {}
        first = min(move.uci() for move in board.legal_moves)
        print(f"bestmove {troubles.get(trouble, first)}", flush=True)
    elif words[0] == "quit" and trouble != "stubborn":
        break
