"""Configuration declared once: every key with type, default, bounds, text, scope and update mode.

Entry points: `broker_keys` and `topic_keys` (the keys as typed constants), `loading.load_broker_config` (file,
environment and flags become a `BrokerConfig`), `broker.BrokerConfig`, `topic.TopicConfig` and
`topic.validate_topic_overrides`, `describe` (what DescribeConfigs answers), `internal_topics`, `effective` (values that
several keys give together).

It knows names and values only. It opens no port, creates no directory and does not know what a key is used for.
"""
