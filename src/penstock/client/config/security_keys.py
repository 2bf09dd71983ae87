"""Keys of TLS and SASL, for every client. Keys and certificates are PEM, as text or in files."""

from __future__ import annotations

from penstock.base.config.declaration import boolean, double, integer, long, password, short, string, words
from penstock.base.config.rules import OneOf
from penstock.client.config.effects import BROKER_CHECKS, FILE_TELLS, NO_JVM, NO_KERBEROS, NO_PASSWORD
from penstock.client.config.values import an_object

SECURITY_PROTOCOL = string(
    "security.protocol",
    "PLAINTEXT",
    "How to talk to brokers.",
    rule=OneOf("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", any_case=True),
)
SECURITY_PROVIDERS = string("security.providers", None, "Java security providers.", effect=NO_JVM)

SSL_PROTOCOL = string("ssl.protocol", "TLSv1.3", "Highest TLS version.")
SSL_ENABLED_PROTOCOLS = words("ssl.enabled.protocols", ("TLSv1.2", "TLSv1.3"), "TLS versions that are allowed.")
SSL_CIPHER_SUITES = words("ssl.cipher.suites", (), "Cipher suites that are allowed; empty leaves it to the library.")
SSL_KEYSTORE_TYPE = string("ssl.keystore.type", "JKS", "Format of the key store.", effect=FILE_TELLS)
SSL_KEYSTORE_LOCATION = string("ssl.keystore.location", None, "File with the client's key and certificate.")
SSL_KEYSTORE_PASSWORD = password("ssl.keystore.password", "Password of the key store.")
SSL_KEY_PASSWORD = password("ssl.key.password", "Password of the private key.")
SSL_KEYSTORE_KEY = password("ssl.keystore.key", "The private key itself, as PEM text.")
SSL_KEYSTORE_CERTIFICATE_CHAIN = password(
    "ssl.keystore.certificate.chain", "The client's certificate chain itself, as PEM text."
)
SSL_TRUSTSTORE_TYPE = string("ssl.truststore.type", "JKS", "Format of the trust store.", effect=FILE_TELLS)
SSL_TRUSTSTORE_LOCATION = string("ssl.truststore.location", None, "File with the certificates that are trusted.")
SSL_TRUSTSTORE_PASSWORD = password("ssl.truststore.password", "Password of the trust store.", effect=NO_PASSWORD)
SSL_TRUSTSTORE_CERTIFICATES = password(
    "ssl.truststore.certificates", "The trusted certificates themselves, as PEM text."
)
SSL_ENDPOINT_IDENTIFICATION_ALGORITHM = string(
    "ssl.endpoint.identification.algorithm",
    "https",
    "How the host name in a broker's certificate is checked; empty turns the check off.",
)
SSL_CA_LOCATION = string("ssl.ca.location", None, "PEM file with the trusted certificates; librdkafka's key.")
SSL_CERTIFICATE_LOCATION = string(
    "ssl.certificate.location", None, "PEM file with the client's certificate chain; librdkafka's key."
)
SSL_KEY_LOCATION = string("ssl.key.location", None, "PEM file with the client's private key; librdkafka's key.")
SSL_PROVIDER = string("ssl.provider", None, "The Java security provider for TLS.", effect=NO_JVM)
SSL_KEYMANAGER_ALGORITHM = string("ssl.keymanager.algorithm", "SunX509", "Java's key managers.", effect=NO_JVM)
SSL_TRUSTMANAGER_ALGORITHM = string("ssl.trustmanager.algorithm", "PKIX", "Java's trust managers.", effect=NO_JVM)
SSL_SECURE_RANDOM_IMPLEMENTATION = string(
    "ssl.secure.random.implementation", None, "Java's random generator for TLS.", effect=NO_JVM
)
SSL_ENGINE_FACTORY_CLASS = an_object(
    "ssl.engine.factory.class", None, "A ready `ssl.SSLContext`, or a function that makes one; wins over other keys."
)

SASL_MECHANISM = string(
    "sasl.mechanism", "GSSAPI", "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER (GSSAPI is not supported)."
)
SASL_JAAS_CONFIG = password("sasl.jaas.config", "Credentials in Java's JAAS form.")
SASL_USERNAME = string("sasl.username", None, "User name for PLAIN and SCRAM, instead of sasl.jaas.config.")
SASL_PASSWORD = password("sasl.password", "Password for PLAIN and SCRAM, instead of sasl.jaas.config.")
SASL_CLIENT_CALLBACK_HANDLER_CLASS = an_object(
    "sasl.client.callback.handler.class", None, "The Java class that gives credentials.", effect=NO_JVM
)
SASL_LOGIN_CALLBACK_HANDLER_CLASS = an_object(
    "sasl.login.callback.handler.class",
    None,
    "For OAUTHBEARER: a function (plain or async) that gives a token, or (token, lifetime in seconds).",
)
SASL_LOGIN_CLASS = an_object("sasl.login.class", None, "The Java class that logs in.", effect=NO_JVM)
SASL_KERBEROS_SERVICE_NAME = string("sasl.kerberos.service.name", None, "Kerberos name.", effect=NO_KERBEROS)
SASL_KERBEROS_KINIT_CMD = string(
    "sasl.kerberos.kinit.cmd", "/usr/bin/kinit", "Path of the kinit command.", effect=NO_KERBEROS
)
SASL_KERBEROS_TICKET_RENEW_WINDOW_FACTOR = double(
    "sasl.kerberos.ticket.renew.window.factor", 0.8, "When a ticket is renewed.", effect=NO_KERBEROS
)
SASL_KERBEROS_TICKET_RENEW_JITTER = double(
    "sasl.kerberos.ticket.renew.jitter", 0.05, "Random part of that time.", effect=NO_KERBEROS
)
SASL_KERBEROS_MIN_TIME_BEFORE_RELOGIN = long(
    "sasl.kerberos.min.time.before.relogin", 60_000, "Least time between two logins.", effect=NO_KERBEROS
)
SASL_LOGIN_REFRESH_WINDOW_FACTOR = double(
    "sasl.login.refresh.window.factor", 0.8, "Share of a token's life after which it is refreshed.", at_least=0.5,
    at_most=1.0,
)  # fmt: skip
SASL_LOGIN_REFRESH_WINDOW_JITTER = double(
    "sasl.login.refresh.window.jitter", 0.05, "Random part of that time.", at_least=0.0, at_most=0.25
)
SASL_LOGIN_REFRESH_MIN_PERIOD_SECONDS = short(
    "sasl.login.refresh.min.period.seconds", 60, "Least time between two refreshes.", at_least=0, at_most=900
)
SASL_LOGIN_REFRESH_BUFFER_SECONDS = short(
    "sasl.login.refresh.buffer.seconds", 300, "Time kept before a token's end.", at_least=0, at_most=3600
)
SASL_LOGIN_CONNECT_TIMEOUT_MS = integer("sasl.login.connect.timeout.ms", None, "Limit on connecting to a token server.")
SASL_LOGIN_READ_TIMEOUT_MS = integer("sasl.login.read.timeout.ms", None, "Limit on reading from a token server.")
SASL_LOGIN_RETRY_BACKOFF_MS = long("sasl.login.retry.backoff.ms", 100, "First pause between tries to log in.")
SASL_LOGIN_RETRY_BACKOFF_MAX_MS = long(
    "sasl.login.retry.backoff.max.ms", 10_000, "Longest pause between tries to log in."
)
SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL = string(
    "sasl.oauthbearer.token.endpoint.url", None, "Where tokens are fetched: https, http or file."
)
SASL_OAUTHBEARER_SCOPE = string("sasl.oauthbearer.scope", None, "Scope asked for in a token request.")
SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_ID = string(
    "sasl.oauthbearer.client.credentials.client.id", None, "Client id of a token request."
)
SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_SECRET = password(
    "sasl.oauthbearer.client.credentials.client.secret", "Client secret of a token request."
)
SASL_OAUTHBEARER_ASSERTION_FILE = string(
    "sasl.oauthbearer.assertion.file",
    None,
    "A signed JWT that a token is given for (jwt-bearer), in place of client id and secret; read for each token.",
)
SASL_OAUTHBEARER_SCOPE_CLAIM_NAME = string(
    "sasl.oauthbearer.scope.claim.name", "scope", "Claim that holds the scope.", effect=BROKER_CHECKS
)
SASL_OAUTHBEARER_SUB_CLAIM_NAME = string(
    "sasl.oauthbearer.sub.claim.name", "sub", "Claim that holds the user.", effect=BROKER_CHECKS
)
SASL_OAUTHBEARER_JWT_RETRIEVER_CLASS = an_object(
    "sasl.oauthbearer.jwt.retriever.class", None, "The Java class that fetches tokens.", effect=NO_JVM
)
SASL_OAUTHBEARER_JWT_VALIDATOR_CLASS = an_object(
    "sasl.oauthbearer.jwt.validator.class", None, "The Java class that checks tokens.", effect=NO_JVM
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_URL = string(
    "sasl.oauthbearer.jwks.endpoint.url", None, "Where keys that check tokens are.", effect=BROKER_CHECKS
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS = long(
    "sasl.oauthbearer.jwks.endpoint.refresh.ms", 3_600_000, "How often they are fetched.", effect=BROKER_CHECKS
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS = long(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", 100, "Pause after a failure.", effect=BROKER_CHECKS
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS = long(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", 10_000, "Longest such pause.", effect=BROKER_CHECKS
)
SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS = integer(
    "sasl.oauthbearer.clock.skew.seconds", 30, "Difference between clocks that is forgiven.", effect=BROKER_CHECKS
)
SASL_OAUTHBEARER_EXPECTED_AUDIENCE = words(
    "sasl.oauthbearer.expected.audience", (), "Audiences of which a token must name one.", effect=BROKER_CHECKS
)
SASL_OAUTHBEARER_EXPECTED_ISSUER = string(
    "sasl.oauthbearer.expected.issuer", None, "Issuer that a token must name.", effect=BROKER_CHECKS
)
SASL_OAUTHBEARER_HEADER_URLENCODE = boolean(
    "sasl.oauthbearer.header.urlencode", False, "Encode client id and secret for URLs in the token request's header."
)
SASL_SCRAM_SASLPREP = boolean(
    "penstock.sasl.scram.saslprep", False, "Prepare SCRAM names and passwords by RFC 4013; Kafka itself does not."
)
