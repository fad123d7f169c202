"""Faster parts for `model`, on CPUs and GPUs: the same functions, up to rounding.

A test compares each with its readable counterpart, in value and gradient. `build.build_model` picks the parts for a
device, so `model` does not need to know about devices. For the letters of shapes see `transformer_mt.model`.
"""
