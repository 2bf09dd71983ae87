"""A shell for SQL, which talks to a server over REST and knows nothing else of it.

`rest` asks the server; `session` does statements one by one and keeps what SET and DEFINE say; `entities` turns answers
into tables; `output` shows them to people or programs, `live` shows rows while they come; `json_text` leaves numbers as
the server sent them; `prompt` and `completion` are the interactive part.
"""
