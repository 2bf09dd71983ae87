"""What a statement changes, decided on a catalog: the command, and what must happen to topics.

Pure: the facts about topics that a decision needs are looked up before (`deciding.topics_of`) and come as values, so
that every statement of a request can be tried on a copy before the first one takes effect. `deciding.decide` is the
entry point; one module per kind of thing that changes.
"""
