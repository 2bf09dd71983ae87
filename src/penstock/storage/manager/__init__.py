"""All logs of a broker: `manager.LogManager` opens, creates, deletes and looks after them.

Decisions and state are on the loop; what blocks goes to workers.
"""
