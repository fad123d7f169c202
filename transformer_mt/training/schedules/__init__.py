"""One file a schedule of the learning rate: its formula, and what its settings must keep to. See `base.Schedule`."""
