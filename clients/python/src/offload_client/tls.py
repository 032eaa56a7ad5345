"""TLS as an offload-server has it."""
from __future__ import annotations

import os
import ssl
from typing import Optional, Union

Path = Union[str, "os.PathLike[str]"]


def tls_context(ca: Optional[Path] = None, certificate: Optional[Path] = None,
                key: Optional[Path] = None) -> ssl.SSLContext:
    """For a client that speaks TLS 1.3 only and checks the server's certificate and name. All are
    PEM files. `ca`: the authorities to trust instead of the system's; `certificate`
    and `key`: this client's own, for a server with --tls-client-ca."""
    context = ssl.create_default_context(cafile=ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    return context
