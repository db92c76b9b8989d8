"""Material: what the pieces of a position are worth."""

import torch
from torch import Tensor

from . import bitboards as bb

VALUES = (1, 3, 3, 5, 9, 0)  # P N B R Q K, in pawns

# An ordered logistic regression of outcomes on the balance, fitted in the 58,605 positions of 384
# games that networks of two runs played to their end, when they had learned from 75,000 and 147,000
# positions: 23 % of these were won, 53 % drawn. Mean log likelihood -0.802; of constant shares,
# -1.014.
LOGITS_PER_PAWN = 0.14
DRAWN_LOGITS = 1.6


class Material:
    """Counts material on one device."""

    def __init__(self, device: torch.device):
        self._bits = bb.bits_of(torch.float32, device)
        # float32 [768], what each square of each of `pieces` is worth.
        worth = torch.tensor([*VALUES, *(-value for value in VALUES)], dtype=torch.float32)
        self._worth = worth.repeat_interleave(64).to(device)
        # Of the chances of: nothing, a win, a draw at least, anything.
        thresholds = (-torch.inf, -DRAWN_LOGITS, DRAWN_LOGITS, torch.inf)
        self._thresholds = torch.tensor(thresholds, device=device)

    def balance(self, pieces: Tensor) -> Tensor:
        """float32 [B], a whole number: the mover's material less the opponent's, of pieces int64
        [B, 12].
        """
        return bb.unpack_bits(pieces, self._bits) @ self._worth

    def chances(self, pieces: Tensor) -> Tensor:
        """float32 [B, 3]: win, draw and loss for the mover, of pieces int64 [B, 12]."""
        balance = self.balance(pieces).unsqueeze(1)
        at_least = torch.sigmoid(torch.add(self._thresholds, balance, alpha=LOGITS_PER_PAWN))
        return at_least[:, 1:] - at_least[:, :-1]
