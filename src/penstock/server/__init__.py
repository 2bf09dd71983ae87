"""The broker process: listeners, sessions, dispatch, one handler per API, and the composition root.

- `broker.Broker` builds every part, starts and stops them.
- `listener` and `session` move frames; they know nothing of Kafka's APIs.
- `dispatch.Dispatcher` turns a frame into an answer: header, version, authorization, quota, handler, metrics.
- `handlers/` has one module per API, each exporting `API`; `registry.ALL_APIS` is the list that ApiVersions answers
  from, so it cannot promise what is not there.

Knows nothing of SQL, of the console, or of clients.
"""
