"""Training: schedule, loss, optimizer, checkpoints and the loop. Knows ids and tensors, never text."""
