#include "comch/session/key.hpp"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "core/error.hpp"
#include "core/fd.hpp"

namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;

constexpr std::size_t kLeastKey = 16;
constexpr std::size_t kMostKey = 4096;

}  // namespace

Key load_key(const std::string& path) {
  const std::string action = "cannot read the key file " + path;
  const core::Fd fd(core::check_errno(::open(path.c_str(), O_RDONLY | O_CLOEXEC), action));
  struct stat status {};
  core::check_errno(::fstat(fd.get(), &status), action);
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw Error(ErrorCode::not_permitted,
                "the key file " + path + " is open to others than its owner: chmod 600 it");
  }
  Key key(kMostKey + 1);
  std::size_t size = 0;
  while (size < key.size()) {
    const auto part =
        core::check_errno(::read(fd.get(), key.data() + size, key.size() - size), action);
    if (part == 0) break;
    size += static_cast<std::size_t>(part);
  }
  if (size < kLeastKey || size > kMostKey) {
    throw Error(ErrorCode::invalid_value, "the key file " + path + " has to have " +
                                              std::to_string(kLeastKey) + " to " +
                                              std::to_string(kMostKey) + " bytes");
  }
  key.resize(size);
  return key;
}

void randomize(std::span<std::byte> bytes) {
  // Up to 256 bytes come whole.
  core::check_errno(::getrandom(bytes.data(), bytes.size(), 0), "getrandom");
}

protocol::Mac make_mac(const Key& key, Role role, const protocol::Nonce& of_peer,
                       const protocol::Nonce& own) {
  const std::string_view label =
      role == Role::server ? "dpu-gpu-offload server" : "dpu-gpu-offload worker";
  std::vector<std::byte> text;
  const auto append = [&](std::span<const std::byte> part) {
    text.insert(text.end(), part.begin(), part.end());
  };
  append(std::as_bytes(std::span(label)));
  append(of_peer);
  append(own);
  protocol::Mac mac{};
  unsigned size = mac.size();
  const std::byte none{};
  const auto* const made =
      ::HMAC(::EVP_sha256(), key.empty() ? &none : key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(),
             reinterpret_cast<unsigned char*>(mac.data()), &size);
  if (made == nullptr) throw Error(ErrorCode::unexpected, "HMAC-SHA256 failed");
  return mac;
}

bool equal_in_secret(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace offload::comch
