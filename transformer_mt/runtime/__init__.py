"""The machine: devices, number formats, memory (`device`), and groups of processes (`distributed`)."""
