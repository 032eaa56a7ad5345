"""TLS as an offload-server has it."""
from __future__ import annotations

import os
import ssl
from typing import Optional, Union

Path = Union[str, "os.PathLike[str]"]


def tls_context(ca: Optional[Path] = None, certificate: Optional[Path] = None,
                key: Optional[Path] = None, crl: Optional[Path] = None) -> ssl.SSLContext:
    """For a client that speaks TLS 1.3 only and checks the server's certificate and name. All are
    PEM files. `ca`: the authorities to trust instead of the system's; `certificate`
    and `key`: this client's own, for a server with --tls-client-ca; `crl`: revocation lists, of which
    each authority of the server needs one. Raises OSError, and ValueError for a wrong file of lists."""
    context = ssl.create_default_context(cafile=ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    if crl is not None:
        _use_revocation_lists(context, crl)
    return context


def _use_revocation_lists(context: ssl.SSLContext, file: Path) -> None:
    with open(file, "rb"):
        pass  # the error of load_verify_locations() does not name the file
    before = context.cert_store_stats()
    try:
        context.load_verify_locations(cafile=file)
    except ssl.SSLError as error:
        raise ValueError(f"cannot use the revocation lists in {os.fspath(file)}: {error}") from error
    added = {kind: count - before[kind] for kind, count in context.cert_store_stats().items()}
    # It trusts each certificate that it finds in the file.
    if added["x509"] or not added["crl"]:
        raise ValueError(f"cannot use the revocation lists in {os.fspath(file)}: it must have lists in PEM, and nothing else")
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN
