"""Files: replaced without loss, locked, verified, downloaded, read line by line."""
