#pragma once

#include <openssl/types.h>

#include <string>

namespace offload::net {

/// Makes `context` refuse each certificate that a certificate revocation list (RFC 5280, 5) in
/// `file` revokes, and each chain of which one authority has no valid list there. `file` is PEM and
/// may have lists of several authorities. Call it after the authorities are loaded. Throws Error,
/// which names the file: a list that has expired, is not valid yet or is not signed by its
/// authority; or no list of an authority that `context` trusts.
void use_revocation_lists(SSL_CTX* context, const std::string& file);

/// Returns the subject and the serial number of a certificate that OpenSSL refuses with `error`,
/// and what a missing or expired revocation list needs. It is safe for the log.
std::string describe_refused(const X509* certificate, int error);

}  // namespace offload::net
