"""longmath: a long word problem about two or three people, worked step by step."""
