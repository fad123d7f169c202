"""One file for each search method: its settings, what it supports, how it chooses. See `base.Search`."""
