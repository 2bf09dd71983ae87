"""The broker keys by theme. Read them through `penstock.base.config.broker_keys`, which has them all."""
