"""What `propose_config` finds out about files of pairs, and how it chooses settings for them."""
