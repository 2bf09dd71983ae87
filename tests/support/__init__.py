"""What several kinds of test share: foreign peers, broker processes, ports.

Nothing here imports ``penstock``: the product under test runs as a process of its own.
"""
