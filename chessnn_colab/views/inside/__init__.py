"""What a network sees, fires and knows, drawn."""

from ... import public_names

__getattr__, __dir__ = public_names("inside")
