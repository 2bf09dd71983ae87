"""SASL mechanisms by the vectors of their RFCs, and against a server that does everything wrong."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.security.sasl import scram_messages as messages
from penstock.security.sasl.jaas import JaasError, parse_login_module
from penstock.security.sasl.mechanism import SaslError
from penstock.security.sasl.oauthbearer import OAuthBearerClient
from penstock.security.sasl.plain import PlainClient, decode_message
from penstock.security.sasl.saslprep import saslprep
from penstock.security.sasl.scram import ScramClient
from penstock.security.sasl.tokens import RefreshRule, Token, as_token, claims_of, refresh_at_ms, unsecured_token
from penstock.security.sasl.unsecured import UnsecuredLoginError, unsecured_login

NOW_MS = 1_700_000_000_000

# RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def rfc_client() -> ScramClient:
    return ScramClient("SCRAM-SHA-256", "user", "pencil", nonce=NONCE)


def test_scram_by_the_vector_of_rfc_7677() -> None:
    client = rfc_client()
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert client.step(SERVER_FIRST) == CLIENT_FINAL
    assert not client.is_complete
    assert client.step(SERVER_FINAL) is None
    assert client.is_complete


@pytest.mark.parametrize(
    ("challenge", "reason"),
    [
        (SERVER_FIRST.replace(b"i=4096", b"i=4095"), "4095 SCRAM iterations"),
        (SERVER_FIRST.replace(b"i=4096", b"i=2000000"), "2000000 SCRAM iterations"),
        (SERVER_FIRST.replace(b"i=4096", b"i=-1"), "lacks"),
        (SERVER_FIRST.replace(b"r=rOpr", b"r=xxxx"), "does not continue ours"),
        (f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode(), "does not continue ours"),
        (b"m=new," + SERVER_FIRST, "extension"),
        (SERVER_FIRST.replace(b"s=W22", b"s=\xc3\xa9"), "not base64"),
        (b"e=unknown-user", "unknown-user"),
        (b"", "no SCRAM message"),
        (b"\xff\xfe", "no SCRAM message"),
    ],
)
def test_scram_refuses_a_bad_first_message(challenge: bytes, reason: str) -> None:
    client = rfc_client()
    client.first()
    with pytest.raises(SaslError, match=reason):
        client.step(challenge)
    assert not client.is_complete


@pytest.mark.parametrize("final", [b"v=AAAA", b"x=1", b"e=invalid-proof", b"", SERVER_FIRST])
def test_scram_refuses_a_server_without_proof(final: bytes) -> None:
    client = rfc_client()
    client.first()
    client.step(SERVER_FIRST)
    with pytest.raises(SaslError):
        client.step(final)
    assert not client.is_complete


@given(
    mechanism=st.sampled_from(sorted(messages.HASHES)),
    username=st.text(min_size=1, max_size=8),
    password=st.text(max_size=8),
    salt=st.binary(min_size=1, max_size=8),
)
def test_both_sides_of_scram_agree(mechanism: str, username: str, password: str, salt: bytes) -> None:
    """A server that keeps stored and server key only believes the client, and the client believes it."""
    hash_name = messages.HASHES[mechanism]
    kept = messages.derive_keys(hash_name, password.encode(), salt, 4096)
    client = ScramClient(mechanism, username, password, nonce="abc", extensions={"tokenauth": "true"})
    first = client.first().decode().removeprefix(messages.GS2_HEADER)
    server_first = f"r=abcdef,s={messages.encode(salt)},i=4096"
    final = client.step(server_first.encode())
    assert final is not None
    bare, _, proof = final.decode().rpartition(",p=")
    signed = f"{first},{server_first},{bare}".encode()
    signature = messages.sign(hash_name, kept.stored_key, signed)
    key = bytes(left ^ right for left, right in zip(messages.decode(proof), signature, strict=True))
    assert messages.hashlib.new(hash_name, key).digest() == kept.stored_key
    client.step(b"v=" + messages.encode(messages.sign(hash_name, kept.server_key, signed)).encode())
    assert client.is_complete


def test_scram_escapes_a_name() -> None:
    client = ScramClient("SCRAM-SHA-512", "a=b,c", "x", nonce="n")
    assert client.first() == b"n,,n=a=3Db=2Cc,r=n"


def test_plain() -> None:
    client = PlainClient("tim", "tanstaaftanstaaf")
    assert client.first() == b"\0tim\0tanstaaftanstaaf"
    assert client.step(b"") is None
    assert client.is_complete
    assert decode_message(b"\0tim\0tanstaaftanstaaf") == ("tim", "tanstaaftanstaaf", "")
    with pytest.raises(SaslError, match="zero"):
        PlainClient("a\0b", "c")
    with pytest.raises(SaslError, match="three parts"):
        decode_message(b"tim")


@pytest.mark.parametrize(
    ("text", "prepared"),
    [("I\u00adX", "IX"), ("user", "user"), ("USER", "USER"), ("\u00aa", "a"), ("\u2168", "IX"), ("a\u00a0b", "a b")],
)
def test_saslprep_by_the_examples_of_rfc_4013(text: str, prepared: str) -> None:
    assert saslprep(text) == prepared


@pytest.mark.parametrize("text", ["\u0007", "\u06271", "\u0627a\u0627"])
def test_saslprep_refuses(text: str) -> None:
    with pytest.raises(SaslError):
        saslprep(text)


def test_oauthbearer() -> None:
    client = OAuthBearerClient(Token(value="vF9dft4qmTc2", started_ms=0, extensions={"traceId": "12 3"}))
    assert client.first() == b"n,,\x01auth=Bearer vF9dft4qmTc2\x01traceId=12 3\x01\x01"
    assert client.step(b"") is None
    assert client.is_complete


def test_oauthbearer_takes_a_refusal_to_its_end() -> None:
    client = OAuthBearerClient(Token(value="token", started_ms=0))
    client.first()
    assert client.step(json.dumps({"status": "invalid_token"}).encode()) == b"\x01"
    assert not client.is_complete
    assert client.refusal == "the token was refused (invalid_token)"
    with pytest.raises(SaslError):
        client.step(b"{}")


@pytest.mark.parametrize(("value", "extensions"), [("", {}), ("a b", {}), ("ok", {"auth": "x"}), ("ok", {"a": "\x01"})])
def test_oauthbearer_refuses_what_would_change_the_message(value: str, extensions: dict[str, str]) -> None:
    with pytest.raises(SaslError):
        OAuthBearerClient(Token(value=value, started_ms=0, extensions=extensions))


# Tokens.


def test_an_unsecured_token_tells_its_own_end() -> None:
    token = unsecured_token({"sub": "alice"}, now_ms=NOW_MS, lifetime_s=60)
    assert token.expires_ms == NOW_MS + 60_000
    assert claims_of(token.value)["sub"] == "alice"
    assert as_token(token.value, NOW_MS) == token
    assert token.value not in repr(token)


def test_what_a_provider_may_give() -> None:
    assert as_token("opaque", NOW_MS).expires_ms is None
    assert as_token(("opaque", 1.5), NOW_MS).expires_ms == NOW_MS + 1500
    for wrong in (None, 5, ("a", "b"), b"token"):
        with pytest.raises(SaslError, match="the token provider gave"):
            as_token(wrong, NOW_MS)


@pytest.mark.parametrize("text", ["a.b.c", "...", "a.!!.c", "x.W10.y", "", "a.eyJleHAiOiJ4In0.c"])
def test_a_token_of_another_kind_has_no_known_end(text: str) -> None:
    assert as_token(text, NOW_MS).expires_ms is None


@pytest.mark.parametrize(
    ("life_s", "due_s"),
    [(3600, 2880), (10_000, 8000), (1000, 700), (30, 24), (0, 0)],
    ids=["a share", "a longer life", "not in the last minutes", "a short life", "over at once"],
)
def test_when_a_token_is_refreshed(life_s: int, due_s: int) -> None:
    token = Token(value="x", started_ms=NOW_MS, expires_ms=NOW_MS + life_s * 1000)
    assert refresh_at_ms(token, RefreshRule(), 0.0) == NOW_MS + due_s * 1000


@given(life_s=st.integers(0, 10**6), chance=st.floats(0, 1, exclude_max=True))
def test_a_token_is_refreshed_within_its_life(life_s: int, chance: float) -> None:
    token = Token(value="x", started_ms=NOW_MS, expires_ms=NOW_MS + life_s * 1000)
    assert NOW_MS <= refresh_at_ms(token, RefreshRule(), chance) <= token.expires_ms  # type: ignore[operator]


def test_a_token_without_an_end_is_fetched_each_time() -> None:
    assert refresh_at_ms(Token(value="x", started_ms=NOW_MS), RefreshRule(), 0.5) == NOW_MS


# Java's form.


def test_a_login_module() -> None:
    module = parse_login_module(
        "org.apache.kafka.common.security.plain.PlainLoginModule required\n"
        '  username="al\\"ice" password=\'s;e=c\' n=1 ;'
    )
    assert module.kind == "PlainLoginModule"
    assert module.options == {"username": 'al"ice', "password": "s;e=c", "n": "1"}
    assert "s;e=c" not in repr(module)


@pytest.mark.parametrize(
    "text", ["", "Module", "Module required", "Module maybe a=b;", 'M required a="b;', "M required a;"]
)
def test_what_is_no_login_module(text: str) -> None:
    with pytest.raises(JaasError):
        parse_login_module(text)


def test_an_unsecured_login() -> None:
    login = unsecured_login(
        {
            "unsecuredLoginStringClaim_sub": "alice",
            "unsecuredLoginNumberClaim_level": "2",
            "unsecuredLoginListClaim_scope": "|read|write",
            "unsecuredLoginExtension_traceId": "7",
            "unsecuredLoginLifetimeSeconds": "60",
        }
    )
    token = login.token(NOW_MS)
    claims = claims_of(token.value)
    assert (claims["sub"], claims["level"], claims["scope"]) == ("alice", 2, ["read", "write"])
    assert token.expires_ms == NOW_MS + 60_000
    assert token.extensions == {"traceId": "7"}


def test_a_login_without_any_source_of_tokens() -> None:
    with pytest.raises(UnsecuredLoginError, match=r"sasl\.oauthbearer\.token\.endpoint\.url"):
        unsecured_login({})
    with pytest.raises(UnsecuredLoginError, match="must be a number"):
        unsecured_login({"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginLifetimeSeconds": "x"})
