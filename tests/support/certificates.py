"""Certificates for tests, made with the ``openssl`` command: one authority, and whatever it signs."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.cache import PeerMissingError

TIMEOUT_S = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    key: Path
    """PKCS#8, not encrypted."""
    certificate: Path
    store: Path
    """Key and chain in one file, as ``ssl.keystore.location`` wants it."""


class Authority:
    """A certificate authority with a directory of its own."""

    def __init__(self, directory: Path, name: str = "Test Authority") -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.certificate = directory / "ca.pem"
        self._key = directory / "ca.key"
        _openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
            "-subj", f"/CN={name}", "-keyout", self._key, "-out", self.certificate,
            "-addext", "keyUsage=critical,keyCertSign,cRLSign",
        )  # fmt: skip

    def issue(self, name: str, alternative_names: str = "", *, days: int = 30) -> Identity:
        """``alternative_names`` as openssl writes them: ``DNS:localhost,IP:127.0.0.1``; negative days have passed."""
        key, request, certificate = (self.directory / f"{name}.{suffix}" for suffix in ("key", "csr", "pem"))
        _openssl(
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
            "-keyout", key, "-out", request,
        )  # fmt: skip
        extensions = self.directory / f"{name}.ext"
        extensions.write_text(f"subjectAltName={alternative_names}\n" if alternative_names else "")
        _openssl(
            "x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial",
            "-days", str(days), "-extfile", extensions, "-out", certificate,
        )  # fmt: skip
        store = self.directory / f"{name}-store.pem"
        store.write_text(key.read_text() + certificate.read_text())
        return Identity(key=key, certificate=certificate, store=store)


def encrypt_key(key: Path, password: str, into: Path) -> Path:
    _openssl("pkcs8", "-topk8", "-in", key, "-out", into, "-passout", f"pass:{password}")
    return into


def pkcs12(identity: Identity, password: str, into: Path) -> Path:
    _openssl(
        "pkcs12", "-export", "-in", identity.certificate, "-inkey", identity.key, "-out", into,
        "-passout", f"pass:{password}",
    )  # fmt: skip
    return into


def _openssl(*arguments: str | Path) -> None:
    program = shutil.which("openssl")
    if program is None:
        raise PeerMissingError("no openssl on this machine", "install the package openssl")
    run = subprocess.run(
        [program, *map(str, arguments)], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if run.returncode != 0:
        raise RuntimeError(f"openssl {arguments[0]} failed:\n{run.stderr}")
