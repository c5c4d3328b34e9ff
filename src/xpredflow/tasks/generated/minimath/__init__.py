"""minimath: a short word problem, worked step by step."""
