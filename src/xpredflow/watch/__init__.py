"""What looks at the Steps of a decode: traces and the terminal view."""
