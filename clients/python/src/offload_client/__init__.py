"""Sends requests to an offload-server: Client, Pool for threads, AsyncClient for asyncio; PacketClient for UDP."""
from .aio import AsyncClient
from .client import Client
from .codec import MAX_MESSAGE_LENGTH
from .errors import (ConnectFailed, ConnectionLost, NotOwner, OffloadError, ProtocolError,
                     Refusal, RequestRefused, ResponseTimeout)
from .packets import PacketClient
from .pool import Pool
from .tls import tls_context

__version__ = "0.1.0"
__all__ = ["AsyncClient", "Client", "ConnectFailed", "ConnectionLost", "MAX_MESSAGE_LENGTH",
           "NotOwner", "OffloadError", "PacketClient", "Pool", "ProtocolError", "Refusal",
           "RequestRefused", "ResponseTimeout", "tls_context"]
