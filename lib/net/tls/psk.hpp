#pragma once

#include <openssl/types.h>

#include <string_view>
#include <vector>

#include "net/tls/context.hpp"

namespace offload::net {

/// Makes handshakes of `context` use these keys; a client uses the first. The keys live as long as
/// the context and its connections, and are wiped then. Throws Error (invalid_value).
void use_keys(SSL_CTX* context, std::vector<PreSharedKey> keys);

/// Returns the name of the key that the peer of a server has proven; empty if it has proven none.
/// Valid as long as `ssl`, after its handshake.
std::string_view proven_identity(const SSL* ssl);

}  // namespace offload::net
