"""`tmt serve`: models behind an HTTP interface, and a page in the browser."""
