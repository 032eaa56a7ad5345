#pragma once

#include <openssl/types.h>

#include <vector>

#include "net/tls/context.hpp"

namespace offload::net {

/// Makes handshakes of `context` use these keys; a client uses the first. The keys live as long as
/// the context and its connections, and are wiped then. Throws Error (invalid_value).
void use_keys(SSL_CTX* context, std::vector<PreSharedKey> keys);

}  // namespace offload::net
