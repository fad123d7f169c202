"""Models of other programs as models of this one."""
