"""Faster parts for `model`, for CPUs and for GPUs: the same functions, up to rounding.

Each is held to its readable counterpart by a test, forward and gradient. A model is built from the set that suits its
device (`build.build_model`), so that `model` need not know what a device is.
"""
