"""The parts of `model`, faster: the same numbers, by other means, for CPUs and for GPUs.

Each is held to its readable counterpart by a test, forward and gradient. A model is built from the set that suits its
device (`build.build_model`), so that `model` need not know what a device is.
"""
