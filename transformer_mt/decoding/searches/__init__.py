"""One file a way of searching: its settings, what it can and cannot do, how it chooses. See `base.Search`."""
