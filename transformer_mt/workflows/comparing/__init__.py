"""Parts of the comparison of runs."""
