"""Training: schedule, optimizer, checkpoints and the loop. It knows ids and tensors, no text."""
