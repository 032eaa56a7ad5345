#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "protocol/control.hpp"

/// The key that server and worker share where they meet over a network, and how each proves to the
/// other that it has it, without showing it: an HMAC-SHA256 over who proves and a fresh number of
/// either side. Any thread.
namespace offload::comch {

/// Empty: none, which is a key that everybody has.
using Key = std::vector<std::byte>;

/// Reads a key file: 16 to 4096 bytes, any, that nobody but its owner and root can read. Throws
/// Error: not_permitted, invalid_value, or what the system says.
Key load_key(const std::string& path);

/// Fills an array with random bytes. Throws Error (operating_system) if there are none to be had.
void randomize(std::span<std::byte> bytes);

enum class Role : std::uint8_t { server, worker };

/// What only the holder of `key` can say: as `role`, to a peer that chose `of_peer`, with a number
/// of its own.
protocol::Mac make_mac(const Key& key, Role role, const protocol::Nonce& of_peer,
                       const protocol::Nonce& own);

/// In a time that does not tell where they differ.
bool equal_in_secret(std::span<const std::byte> a, std::span<const std::byte> b) noexcept;

}  // namespace offload::comch
