"""The Kafka wire protocol as pure functions from bytes to values and back, for both roles.

Entry points: `apis` (keys, versions, header versions), `requests` (frames in, frames out), `messages` (one module per
API), `codec` (compiles a message class for one version), `hot` (hand-written codecs for the busiest APIs). It must not
know sockets, clocks, logs, topics or who is asking; where a frame ends is `network.framing`'s business.
"""
