"""From files to batches of ids: corpora are read, prepared once into memory-mapped stores, and batched from there."""
