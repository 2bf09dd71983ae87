"""ksqlDB's REST interface over one engine.

`app` has the table of routes; a module per kind of endpoint answers (`statements`, `queries`, `inserts`, `status`).
They decode (`requests`), call the engine in threads (`workers`), and encode (`row_formats`, `values`, `errors`).
`listening` serves the application with HTTP/1.1 and HTTP/2 on one port; `process` builds everything a server needs and
takes it down again.

What the engine must be able to do is said in `ports`; nothing else in here knows how statements run.
"""
