"""Programs that collect the figures of many runs, one file each."""
