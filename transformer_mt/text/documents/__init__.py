"""Documents: what of a file is text, and the same file with other text in these places."""
