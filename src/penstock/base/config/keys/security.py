"""TLS, SASL and delegation tokens."""

from __future__ import annotations

from penstock.base.config.declaration import (
    PER_BROKER,
    boolean,
    class_name,
    double,
    integer,
    long,
    password,
    short,
    string,
    words,
)
from penstock.base.config.effects import NO_JVM, NO_KERBEROS, NO_SECURITY, NO_TOKENS
from penstock.base.config.rules import OneOf

CONNECTIONS_MAX_REAUTH_MS = long(
    "connections.max.reauth.ms",
    0,
    "A SASL connection must authenticate again after this time; 0 means never.",
    effect=NO_SECURITY,
)
SASL_SERVER_MAX_RECEIVE_SIZE = integer(
    "sasl.server.max.receive.size",
    524_288,
    "Largest SASL message accepted before a client is authenticated.",
    effect=NO_SECURITY,
)
SECURITY_PROVIDERS = string("security.providers", None, "Java security providers.", effect=NO_JVM)
PRINCIPAL_BUILDER_CLASS = class_name(
    "principal.builder.class",
    "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    "The Java class that names the user of a connection.",
    update=PER_BROKER,
    effect=NO_JVM,
)
SSL_CLIENT_AUTH = string(
    "ssl.client.auth",
    "none",
    "Whether clients must, may or need not show a certificate.",
    rule=OneOf("required", "requested", "none"),
    update=PER_BROKER,
    effect=NO_SECURITY,
)
SSL_PRINCIPAL_MAPPING_RULES = string(
    "ssl.principal.mapping.rules",
    "DEFAULT",
    "Rules that turn a certificate's name into a user name.",
    effect=NO_SECURITY,
)
SSL_ALLOW_DN_CHANGES = boolean(
    "ssl.allow.dn.changes", False, "Let a reloaded certificate carry another distinguished name.", effect=NO_SECURITY
)
SSL_ALLOW_SAN_CHANGES = boolean(
    "ssl.allow.san.changes", False, "Let a reloaded certificate carry other host names.", effect=NO_SECURITY
)
SSL_PROTOCOL = string("ssl.protocol", "TLSv1.3", "Highest TLS version.", update=PER_BROKER, effect=NO_SECURITY)
SSL_PROVIDER = string("ssl.provider", None, "The Java security provider for TLS.", update=PER_BROKER, effect=NO_JVM)
SSL_ENABLED_PROTOCOLS = words(
    "ssl.enabled.protocols",
    (
        "TLSv1.2",
        "TLSv1.3",
    ),
    "TLS versions that are allowed.",
    update=PER_BROKER,
    effect=NO_SECURITY,
)
SSL_KEYSTORE_TYPE = string(
    "ssl.keystore.type", "JKS", "Format of the key store.", update=PER_BROKER, effect=NO_SECURITY
)
SSL_KEYSTORE_LOCATION = string(
    "ssl.keystore.location", None, "File with the broker's key and certificate.", update=PER_BROKER, effect=NO_SECURITY
)
SSL_KEYSTORE_PASSWORD = password(
    "ssl.keystore.password", "Password of the key store.", update=PER_BROKER, effect=NO_SECURITY
)
SSL_KEY_PASSWORD = password("ssl.key.password", "Password of the private key.", update=PER_BROKER, effect=NO_SECURITY)
SSL_KEYSTORE_KEY = password(
    "ssl.keystore.key", "The private key itself, as PEM text.", update=PER_BROKER, effect=NO_SECURITY
)
SSL_KEYSTORE_CERTIFICATE_CHAIN = password(
    "ssl.keystore.certificate.chain",
    "The certificate chain itself, as PEM text.",
    update=PER_BROKER,
    effect=NO_SECURITY,
)
SSL_TRUSTSTORE_TYPE = string(
    "ssl.truststore.type", "JKS", "Format of the trust store.", update=PER_BROKER, effect=NO_SECURITY
)
SSL_TRUSTSTORE_LOCATION = string(
    "ssl.truststore.location",
    None,
    "File with the certificates that are trusted.",
    update=PER_BROKER,
    effect=NO_SECURITY,
)
SSL_TRUSTSTORE_PASSWORD = password(
    "ssl.truststore.password", "Password of the trust store.", update=PER_BROKER, effect=NO_SECURITY
)
SSL_TRUSTSTORE_CERTIFICATES = password(
    "ssl.truststore.certificates",
    "The trusted certificates themselves, as PEM text.",
    update=PER_BROKER,
    effect=NO_SECURITY,
)
SSL_KEYMANAGER_ALGORITHM = string(
    "ssl.keymanager.algorithm", "SunX509", "Java's algorithm for key managers.", update=PER_BROKER, effect=NO_JVM
)
SSL_TRUSTMANAGER_ALGORITHM = string(
    "ssl.trustmanager.algorithm", "PKIX", "Java's algorithm for trust managers.", update=PER_BROKER, effect=NO_JVM
)
SSL_ENDPOINT_IDENTIFICATION_ALGORITHM = string(
    "ssl.endpoint.identification.algorithm",
    "https",
    "How the host name in a peer's certificate is checked; empty turns the check off.",
    update=PER_BROKER,
    effect=NO_SECURITY,
)
SSL_SECURE_RANDOM_IMPLEMENTATION = string(
    "ssl.secure.random.implementation", None, "Java's random generator for TLS.", update=PER_BROKER, effect=NO_JVM
)
SSL_CIPHER_SUITES = words(
    "ssl.cipher.suites",
    (),
    "Cipher suites that are allowed; empty means the library's choice.",
    update=PER_BROKER,
    effect=NO_SECURITY,
)
SSL_ENGINE_FACTORY_CLASS = class_name(
    "ssl.engine.factory.class", None, "The Java class that makes TLS engines.", update=PER_BROKER, effect=NO_JVM
)
SASL_MECHANISM_INTER_BROKER_PROTOCOL = string(
    "sasl.mechanism.inter.broker.protocol",
    "GSSAPI",
    "SASL mechanism between brokers.",
    update=PER_BROKER,
    effect=NO_SECURITY,
)
SASL_ENABLED_MECHANISMS = words(
    "sasl.enabled.mechanisms",
    ("GSSAPI",),
    "SASL mechanisms that clients may use.",
    update=PER_BROKER,
    effect=NO_SECURITY,
)
SASL_SERVER_CALLBACK_HANDLER_CLASS = class_name(
    "sasl.server.callback.handler.class", None, "The Java class that checks credentials.", effect=NO_JVM
)
SASL_KERBEROS_PRINCIPAL_TO_LOCAL_RULES = words(
    "sasl.kerberos.principal.to.local.rules",
    ("DEFAULT",),
    "Rules that turn a Kerberos principal into a user name.",
    update=PER_BROKER,
    effect=NO_KERBEROS,
)
SASL_JAAS_CONFIG = password(
    "sasl.jaas.config", "Login settings of a SASL mechanism, in the JAAS form.", update=PER_BROKER, effect=NO_SECURITY
)
SASL_CLIENT_CALLBACK_HANDLER_CLASS = class_name(
    "sasl.client.callback.handler.class", None, "The Java class that gives credentials to other brokers.", effect=NO_JVM
)
SASL_LOGIN_CLASS = class_name("sasl.login.class", None, "The Java class that logs in.", effect=NO_JVM)
SASL_LOGIN_CALLBACK_HANDLER_CLASS = class_name(
    "sasl.login.callback.handler.class", None, "The Java class that the login asks.", effect=NO_JVM
)
SASL_KERBEROS_SERVICE_NAME = string(
    "sasl.kerberos.service.name",
    None,
    "Kerberos name that the brokers run under.",
    update=PER_BROKER,
    effect=NO_KERBEROS,
)
SASL_KERBEROS_KINIT_CMD = string(
    "sasl.kerberos.kinit.cmd", "/usr/bin/kinit", "Path of the kinit command.", update=PER_BROKER, effect=NO_KERBEROS
)
SASL_KERBEROS_TICKET_RENEW_WINDOW_FACTOR = double(
    "sasl.kerberos.ticket.renew.window.factor",
    0.8,
    "Share of a ticket's life after which it is renewed.",
    update=PER_BROKER,
    effect=NO_KERBEROS,
)
SASL_KERBEROS_TICKET_RENEW_JITTER = double(
    "sasl.kerberos.ticket.renew.jitter",
    0.05,
    "Random part of the time of renewal.",
    update=PER_BROKER,
    effect=NO_KERBEROS,
)
SASL_KERBEROS_MIN_TIME_BEFORE_RELOGIN = long(
    "sasl.kerberos.min.time.before.relogin",
    60_000,
    "Least time between two logins.",
    update=PER_BROKER,
    effect=NO_KERBEROS,
)
SASL_LOGIN_REFRESH_WINDOW_FACTOR = double(
    "sasl.login.refresh.window.factor",
    0.8,
    "Share of a credential's life after which it is refreshed.",
    update=PER_BROKER,
    effect=NO_SECURITY,
)
SASL_LOGIN_REFRESH_WINDOW_JITTER = double(
    "sasl.login.refresh.window.jitter",
    0.05,
    "Random part of the time of refresh.",
    update=PER_BROKER,
    effect=NO_SECURITY,
)
SASL_LOGIN_REFRESH_MIN_PERIOD_SECONDS = short(
    "sasl.login.refresh.min.period.seconds",
    60,
    "Least time between two refreshes of a credential.",
    update=PER_BROKER,
    effect=NO_SECURITY,
)
SASL_LOGIN_REFRESH_BUFFER_SECONDS = short(
    "sasl.login.refresh.buffer.seconds",
    300,
    "Time kept between a refresh and the credential's end.",
    update=PER_BROKER,
    effect=NO_SECURITY,
)
SASL_LOGIN_CONNECT_TIMEOUT_MS = integer(
    "sasl.login.connect.timeout.ms", None, "Limit on connecting to a token server.", effect=NO_SECURITY
)
SASL_LOGIN_READ_TIMEOUT_MS = integer(
    "sasl.login.read.timeout.ms", None, "Limit on reading from a token server.", effect=NO_SECURITY
)
SASL_LOGIN_RETRY_BACKOFF_MAX_MS = long(
    "sasl.login.retry.backoff.max.ms", 10_000, "Longest pause between tries to log in.", effect=NO_SECURITY
)
SASL_LOGIN_RETRY_BACKOFF_MS = long(
    "sasl.login.retry.backoff.ms", 100, "First pause between tries to log in.", effect=NO_SECURITY
)
SASL_OAUTHBEARER_JWT_RETRIEVER_CLASS = class_name(
    "sasl.oauthbearer.jwt.retriever.class",
    "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
    "The Java class that fetches tokens.",
    effect=NO_JVM,
)
SASL_OAUTHBEARER_JWT_VALIDATOR_CLASS = class_name(
    "sasl.oauthbearer.jwt.validator.class",
    "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
    "The Java class that checks tokens.",
    effect=NO_JVM,
)
SASL_OAUTHBEARER_SCOPE = string(
    "sasl.oauthbearer.scope", None, "Scope asked for in a token request.", effect=NO_SECURITY
)
SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_ID = string(
    "sasl.oauthbearer.client.credentials.client.id", None, "Client id of a token request.", effect=NO_SECURITY
)
SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_SECRET = password(
    "sasl.oauthbearer.client.credentials.client.secret", "Client secret of a token request.", effect=NO_SECURITY
)
SASL_OAUTHBEARER_ASSERTION_ALGORITHM = string(
    "sasl.oauthbearer.assertion.algorithm",
    "RS256",
    "Algorithm that signs assertions.",
    rule=OneOf("ES256", "RS256", any_case=True),
    effect=NO_SECURITY,
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_AUD = string(
    "sasl.oauthbearer.assertion.claim.aud", None, "Audience named in an assertion.", effect=NO_SECURITY
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_EXP_SECONDS = integer(
    "sasl.oauthbearer.assertion.claim.exp.seconds",
    300,
    "How long an assertion is valid.",
    at_least=0,
    at_most=86_400,
    effect=NO_SECURITY,
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_ISS = string(
    "sasl.oauthbearer.assertion.claim.iss", None, "Issuer named in an assertion.", effect=NO_SECURITY
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_JTI_INCLUDE = boolean(
    "sasl.oauthbearer.assertion.claim.jti.include", False, "Give each assertion an id of its own.", effect=NO_SECURITY
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_NBF_SECONDS = integer(
    "sasl.oauthbearer.assertion.claim.nbf.seconds",
    60,
    "How far back an assertion's validity begins.",
    at_least=0,
    at_most=3600,
    effect=NO_SECURITY,
)
SASL_OAUTHBEARER_ASSERTION_CLAIM_SUB = string(
    "sasl.oauthbearer.assertion.claim.sub", None, "Subject named in an assertion.", effect=NO_SECURITY
)
SASL_OAUTHBEARER_ASSERTION_FILE = string(
    "sasl.oauthbearer.assertion.file", None, "File with a ready assertion.", effect=NO_SECURITY
)
SASL_OAUTHBEARER_ASSERTION_PRIVATE_KEY_FILE = string(
    "sasl.oauthbearer.assertion.private.key.file", None, "File with the key that signs assertions.", effect=NO_SECURITY
)
SASL_OAUTHBEARER_ASSERTION_PRIVATE_KEY_PASSPHRASE = password(
    "sasl.oauthbearer.assertion.private.key.passphrase", "Passphrase of that key.", effect=NO_SECURITY
)
SASL_OAUTHBEARER_ASSERTION_TEMPLATE_FILE = string(
    "sasl.oauthbearer.assertion.template.file",
    None,
    "File with further claims and headers for assertions.",
    effect=NO_SECURITY,
)
SASL_OAUTHBEARER_SCOPE_CLAIM_NAME = string(
    "sasl.oauthbearer.scope.claim.name", "scope", "Name of a token's claim that holds the scope.", effect=NO_SECURITY
)
SASL_OAUTHBEARER_SUB_CLAIM_NAME = string(
    "sasl.oauthbearer.sub.claim.name", "sub", "Name of a token's claim that holds the user.", effect=NO_SECURITY
)
SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL = string(
    "sasl.oauthbearer.token.endpoint.url", None, "Where tokens are fetched.", effect=NO_SECURITY
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_URL = string(
    "sasl.oauthbearer.jwks.endpoint.url", None, "Where the keys that check tokens are fetched.", effect=NO_SECURITY
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS = long(
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    3_600_000,
    "How often those keys are fetched again.",
    effect=NO_SECURITY,
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS = long(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", 100, "First pause after such a fetch failed.", effect=NO_SECURITY
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS = long(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    10_000,
    "Longest pause after such a fetch failed.",
    effect=NO_SECURITY,
)
SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS = integer(
    "sasl.oauthbearer.clock.skew.seconds",
    30,
    "Difference between clocks that is forgiven when a token is checked.",
    effect=NO_SECURITY,
)
SASL_OAUTHBEARER_EXPECTED_AUDIENCE = words(
    "sasl.oauthbearer.expected.audience", (), "Audiences of which a token must name one.", effect=NO_SECURITY
)
SASL_OAUTHBEARER_EXPECTED_ISSUER = string(
    "sasl.oauthbearer.expected.issuer", None, "Issuer that a token must name.", effect=NO_SECURITY
)
DELEGATION_TOKEN_SECRET_KEY = password(
    "delegation.token.secret.key", "Secret that signs delegation tokens.", effect=NO_TOKENS
)
DELEGATION_TOKEN_MAX_LIFETIME_MS = long(
    "delegation.token.max.lifetime.ms",
    604_800_000,
    "Age after which a token cannot be renewed.",
    at_least=1,
    effect=NO_TOKENS,
)
DELEGATION_TOKEN_EXPIRY_TIME_MS = long(
    "delegation.token.expiry.time.ms", 86_400_000, "Life of a token between renewals.", at_least=1, effect=NO_TOKENS
)
DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS = long(
    "delegation.token.expiry.check.interval.ms",
    3_600_000,
    "Time between two searches for expired tokens.",
    at_least=1,
    effect=NO_TOKENS,
)
