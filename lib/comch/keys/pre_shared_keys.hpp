#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "comch/keys/keyring.hpp"
#include "net/tls/context.hpp"

/// The keys of server and worker for TLS, which gets a value derived from a key and not the key
/// itself, because other values are derived from that, too (fingerprint()).
namespace offload::comch {

/// Return the contexts for a worker's connections, with the first key, and for a server's, with all
/// keys. Throw Error.
net::TlsContext worker_context(const Keyring& keys);
net::TlsContext server_context(const Keyring& keys);

/// Returns the fingerprint() of the key that an identity names; empty for another identity.
std::string fingerprint_in(std::string_view identity);

/// Returns whether the first message that a server gets on `socket` names one of its keys; nothing
/// if it is incomplete. Reads nothing off the socket and does no cryptography: a peer that does not
/// know the name costs no more than this.
std::optional<bool> names_a_key(int socket, const Keyring& keys);

}  // namespace offload::comch
