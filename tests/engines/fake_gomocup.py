"""A Gomocup engine that plays the first empty cell, or has the trouble that its argument names, from
its second move on.
"""

import itertools
import os
import sys
import time

trouble = sys.argv[1]
size, taken, moves = 0, set(), itertools.count(1)


def say(text):
    print(text, flush=True)


def play():
    later = next(moves) > 1
    cells = ((column, row) for row in range(size) for column in range(size))
    column, row = next(cell for cell in cells if cell not in taken)
    if later and trouble == "crash":
        os._exit(3)
    if later and trouble == "silence":
        time.sleep(600)
    while later and trouble == "unsure":
        say("UNKNOWN key")
        time.sleep(0.1)
    if later and trouble == "words":
        return say("ERROR no idea")
    if later and trouble == "taken":
        column, row = next(iter(taken))
    if later and trouble == "outside":
        column = size
    say(f"MESSAGE thinking\nDEBUG deep\n{column},{row}")


for line in sys.stdin:
    words = line.split()
    if words[0] == "START" and trouble == "small":
        say("ERROR unsupported size")
    elif words[0] == "START" and trouble == "chat":
        while True:
            say("MESSAGE hello")
    elif words[0] == "START":
        size, taken = int(words[1]), set()
        say("OK")
    elif words[0] == "INFO" and trouble == "info":
        time.sleep(0.01)
        say("UNKNOWN key")
    elif words[0] == "RESTART" and trouble == "basic":
        say("UNKNOWN command")
    elif words[0] == "RESTART":
        taken = set()
        say("OK")
    elif words[0] == "BOARD":
        owners = []
        while (stone := sys.stdin.readline().strip()) != "DONE":
            column, row, owner = map(int, stone.split(","))
            assert (column, row) not in taken
            taken.add((column, row))
            owners.append(owner)
        assert abs(owners.count(1) - owners.count(2)) <= 1 and owners[-1] == 2
        play()
    elif words[0] == "BEGIN":
        assert not taken
        play()
    elif words[0] == "END" and trouble != "stubborn":
        break
