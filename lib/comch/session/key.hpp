#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "protocol/control.hpp"

/// The key that server and worker share where they meet over a network, and what each proves its
/// knowledge of it with: an HMAC-SHA256 over its role and a nonce of either side. Any thread.
namespace offload::comch {

/// Empty: no key, which is one that everybody has.
using Key = std::vector<std::byte>;

/// Reads a key file: 16 to 4096 bytes, any, that only its owner and root can read. Throws Error:
/// not_permitted, invalid_value, or the system's.
Key load_key(const std::string& path);

/// Fills an array with random bytes: getrandom(2). Throws Error (operating_system).
void randomize(std::span<std::byte> bytes);

enum class Role : std::uint8_t { server, worker };

/// The proof of a holder of `key` in `role`, to a peer whose nonce is `of_peer`, with its own.
protocol::Mac make_mac(const Key& key, Role role, const protocol::Nonce& of_peer,
                       const protocol::Nonce& own);

/// Compares in a time that does not depend on where they differ.
bool equal_in_secret(std::span<const std::byte> a, std::span<const std::byte> b) noexcept;

}  // namespace offload::comch
