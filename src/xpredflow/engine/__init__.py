"""The one decoding loop and what it is made of."""
