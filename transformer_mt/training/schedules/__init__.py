"""One file per learning rate schedule: its formula and checks of its settings. See `base.Schedule`."""
