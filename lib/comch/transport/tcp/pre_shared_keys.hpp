#pragma once

#include <optional>

#include "comch/session/keyring.hpp"
#include "net/tls/context.hpp"

/// The keys of server and worker as TLS takes them: what is handed to it is derived from a key, and
/// not the key itself, from which other things are derived too (fingerprint()).
namespace offload::comch {

/// What a worker's connections are made from, with the first of the keys, and a server's, with all.
/// Throws Error.
net::TlsContext worker_context(const Keyring& keys);
net::TlsContext server_context(const Keyring& keys);

/// Whether the first message that a server gets on `socket` names one of its keys; nothing if it
/// has not come whole. Nothing is taken off the socket, and no cryptography is done: strangers, who
/// do not know the name, cost no more than this.
std::optional<bool> names_a_key(int socket, const Keyring& keys);

}  // namespace offload::comch
