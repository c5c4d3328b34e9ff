"""One file per command: it parses, shows progress and prints; what it does is one Python call."""
