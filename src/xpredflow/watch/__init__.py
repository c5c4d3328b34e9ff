"""What looks at the Steps of a decode: traces, pictures of rows, the terminal view."""
