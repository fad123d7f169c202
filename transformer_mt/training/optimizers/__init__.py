"""One file per kind of optimizer. See `base.OptimizerKind`."""
