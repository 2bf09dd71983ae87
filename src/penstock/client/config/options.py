"""The keys as typed keywords, for `Unpack`: `Producer(bootstrap_servers="localhost", linger_ms=20)`.

A test keeps them equal to the declared keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict


class CommonOptions(TypedDict, total=False):
    security_protocol: str
    security_providers: str | None
    ssl_protocol: str
    ssl_enabled_protocols: str | Sequence[str]
    ssl_cipher_suites: str | Sequence[str]
    ssl_keystore_type: str
    ssl_keystore_location: str | None
    ssl_keystore_password: str | None
    ssl_key_password: str | None
    ssl_keystore_key: str | None
    ssl_keystore_certificate_chain: str | None
    ssl_truststore_type: str
    ssl_truststore_location: str | None
    ssl_truststore_password: str | None
    ssl_truststore_certificates: str | None
    ssl_endpoint_identification_algorithm: str
    ssl_ca_location: str | None
    ssl_certificate_location: str | None
    ssl_key_location: str | None
    ssl_provider: str | None
    ssl_keymanager_algorithm: str
    ssl_trustmanager_algorithm: str
    ssl_secure_random_implementation: str | None
    ssl_engine_factory_class: Any
    sasl_mechanism: str
    sasl_jaas_config: str | None
    sasl_username: str | None
    sasl_password: str | None
    sasl_client_callback_handler_class: Any
    sasl_login_callback_handler_class: Any
    sasl_login_class: Any
    sasl_kerberos_service_name: str | None
    sasl_kerberos_kinit_cmd: str
    sasl_kerberos_ticket_renew_window_factor: float
    sasl_kerberos_ticket_renew_jitter: float
    sasl_kerberos_min_time_before_relogin: int
    sasl_login_refresh_window_factor: float
    sasl_login_refresh_window_jitter: float
    sasl_login_refresh_min_period_seconds: int
    sasl_login_refresh_buffer_seconds: int
    sasl_login_connect_timeout_ms: int | None
    sasl_login_read_timeout_ms: int | None
    sasl_login_retry_backoff_ms: int
    sasl_login_retry_backoff_max_ms: int
    sasl_oauthbearer_token_endpoint_url: str | None
    sasl_oauthbearer_scope: str | None
    sasl_oauthbearer_client_credentials_client_id: str | None
    sasl_oauthbearer_client_credentials_client_secret: str | None
    sasl_oauthbearer_assertion_file: str | None
    sasl_oauthbearer_scope_claim_name: str
    sasl_oauthbearer_sub_claim_name: str
    sasl_oauthbearer_jwt_retriever_class: Any
    sasl_oauthbearer_jwt_validator_class: Any
    sasl_oauthbearer_jwks_endpoint_url: str | None
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int
    sasl_oauthbearer_clock_skew_seconds: int
    sasl_oauthbearer_expected_audience: str | Sequence[str]
    sasl_oauthbearer_expected_issuer: str | None
    sasl_oauthbearer_header_urlencode: bool
    penstock_sasl_scram_saslprep: bool
    bootstrap_servers: str | Sequence[str]
    client_dns_lookup: str
    client_id: str
    client_rack: str
    metadata_max_age_ms: int
    metadata_recovery_strategy: str
    metadata_recovery_rebootstrap_trigger_ms: int
    send_buffer_bytes: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    request_timeout_ms: int
    socket_connection_setup_timeout_ms: int
    socket_connection_setup_timeout_max_ms: int
    connections_max_idle_ms: int
    metrics_num_samples: int
    metrics_sample_window_ms: int
    metrics_recording_level: str
    metric_reporters: str | Sequence[Any]
    enable_metrics_push: bool


class ProducerOptions(CommonOptions, total=False):
    """Keywords of `Producer`."""

    key_serializer: Any
    value_serializer: Any
    receive_buffer_bytes: int
    buffer_memory: int
    batch_size: int
    linger_ms: int
    delivery_timeout_ms: int
    acks: str | int
    retries: int
    max_request_size: int
    max_block_ms: int
    max_in_flight_requests_per_connection: int
    metadata_max_idle_ms: int
    compression_type: str
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    partitioner_class: Any
    partitioner_ignore_keys: bool
    partitioner_adaptive_partitioning_enable: bool
    partitioner_availability_timeout_ms: int
    partitioner_rack_aware: bool
    interceptor_classes: str | Sequence[Any]
    enable_idempotence: bool
    transaction_timeout_ms: int
    transactional_id: str | None
    transaction_two_phase_commit_enable: bool
    penstock_partitioner_keyless: str
    allow_auto_create_topics: bool
    default_api_timeout_ms: int
    partitioner: Any
    interceptors: Sequence[Any]


class ConsumerOptions(CommonOptions, total=False):
    """Keywords of `Consumer`."""

    group_id: str | None
    group_instance_id: str | None
    group_protocol: str
    group_remote_assignor: str | None
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    max_poll_records: int
    partition_assignment_strategy: str | Sequence[Any]
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    auto_offset_reset: str
    fetch_min_bytes: int
    fetch_max_wait_ms: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    check_crcs: bool
    isolation_level: str
    receive_buffer_bytes: int
    default_api_timeout_ms: int
    key_deserializer: Any
    value_deserializer: Any
    interceptor_classes: str | Sequence[Any]
    exclude_internal_topics: bool
    allow_auto_create_topics: bool
    penstock_offset_store: Any
    penstock_prefetch_bytes: int
    max_in_flight_requests_per_connection: int
    offset_store: Any
    prefetch_bytes: int
    interceptors: Sequence[Any]


class AdminOptions(CommonOptions, total=False):
    """Keywords of `Admin`."""

    bootstrap_controllers: str | Sequence[str]
    receive_buffer_bytes: int
    retries: int
    default_api_timeout_ms: int
    max_in_flight_requests_per_connection: int
