"""One file per kind of optimizer: how to make it for a model. See `base.OptimizerKind`."""
