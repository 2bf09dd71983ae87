"""Spark itself: the Java machine, the session on it, and the packages that executors elsewhere are sent."""
