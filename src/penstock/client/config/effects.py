"""Why a key of Kafka's has no effect here."""

from __future__ import annotations

from typing import Final

NO_JVM: Final = "there is no Java virtual machine here"
NO_KERBEROS: Final = "Kerberos (GSSAPI) is not supported; use SCRAM, OAUTHBEARER, PLAIN or client certificates"
FILE_TELLS: Final = "the file itself tells: PEM is read, JKS and PKCS12 are refused with the command that converts them"
NO_PASSWORD: Final = "trusted certificates are read as PEM, which has no password"
NO_LEVELS: Final = "all of it is cheap, and always measured"
NO_PUSH: Final = "the client sends no metrics to brokers"
ONE_LOOKUP: Final = "every address that a host name has is tried in any case"
BROKER_CHECKS: Final = "it matters to the side that checks tokens, which is the broker"
PLAIN_STICKY: Final = "keyless records stay on one partition for a batch, whichever broker leads it"
CLASSIC_ONLY: Final = "the client speaks the classic group protocol"
