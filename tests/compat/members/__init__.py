"""Programs that hold members of consumer groups, one program per client.

They run as processes of their own so that a test can end members the hard way. What they read and print is in
``wire.py``; the programs in Java, Go and JavaScript speak the same lines.
"""
