"""One file per schedule of the learning rate: its formula, and the limits of its settings. See `base.Schedule`."""
