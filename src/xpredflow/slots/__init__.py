"""Fixed text with gaps that are free, one of several choices, or values that always parse.

One mechanism for every decoder: before a pass is read, each position of a gap keeps the tokens with
which the gap can still become valid (constraint.py), as a small automaton over tokens says
(automaton.py). template.py says what gaps there are, fill.py puts them on a row and reads them off.
"""
