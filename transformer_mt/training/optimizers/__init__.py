"""One file a kind of optimizer: how it is made for a model. See `base.OptimizerKind`."""
