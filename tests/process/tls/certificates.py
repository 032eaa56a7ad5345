"""Certificates for tests, made by the openssl tool, and the programs' options for them."""
import shutil
import subprocess

import pytest

from harness import PATIENCE

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None,
                                   reason="needs the openssl tool (package openssl)")


class Authority:
    """A certificate authority and what it signs, made by the openssl tool: PEM files, as strict as
    Python 3.13 wants them."""

    def __init__(self, folder, name):
        self._folder, self._name = folder, name
        self.ca = folder / f"{name}.pem"
        self._key = folder / f"{name}.key"
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                      "-noenc", "-keyout", self._key, "-out", self.ca, "-subj", f"/CN={name}",
                      "-days", 2, "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def issue(self, name, names, days=1, key=("ec", "-pkeyopt", "ec_paramgen_curve:P-256")):
        """The files of a certificate for `names` and of its key. `key`: what openssl -newkey takes."""
        request, certificate, own_key, extra = (self._folder / f"{self._name}-{name}.{kind}"
                                                for kind in ("csr", "pem", "key", "ext"))
        self._openssl("req", "-newkey", *key, "-noenc", "-keyout", own_key, "-out", request,
                      "-subj", f"/CN={name}")
        extra.write_text(f"subjectAltName={names}\nauthorityKeyIdentifier=keyid\n")
        self._openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self._key,
                      "-CAcreateserial", "-days", days, "-extfile", extra, "-out", certificate)
        own_key.chmod(0o600)
        return certificate, own_key

    def revoke(self, *certificates, until="20991231235959Z"):
        """Writes the list of the authority, which revokes these certificates, and returns its file."""
        database, settings, crl = (self._folder / f"{self._name}-crl.{kind}" for kind in ("index", "conf", "pem"))
        database.write_text("")
        settings.write_text(f"[ca]\ndefault_ca=own\n[own]\ndatabase={database}\ndefault_md=sha256\n")
        own_files = ("ca", "-config", settings, "-cert", self.ca, "-keyfile", self._key)
        for certificate in certificates:
            self._openssl(*own_files, "-revoke", certificate)
        self._openssl(*own_files, "-gencrl", "-crl_lastupdate", "20200101000000Z", "-crl_nextupdate", until, "-out", crl)
        return crl

    @staticmethod
    def _openssl(*words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True,
                       timeout=PATIENCE)


def own(certificate):
    return ["--tls-certificate", certificate[0], "--tls-key", certificate[1]]


def trusting(authority):
    return ["--tls", "--tls-ca", authority.ca]
