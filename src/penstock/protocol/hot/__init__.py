"""Hand-written codecs for the APIs that a busy broker answers tens of thousands of times a second.

They say the same as the generated messages, and tests hold the two against each other, but they build tuples instead
of message objects and leave records where they are: in the receive buffer, or in a file.
"""
