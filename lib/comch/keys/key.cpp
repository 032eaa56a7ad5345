#include "comch/keys/key.hpp"

#include <fmt/core.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bitset>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/fd.hpp"

namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;

/// A key has at least this number of different byte values, and of different steps between bytes.
/// 64 random hexadecimal digits have fewer than 10 of 16 once in 10^15 keys.
constexpr std::size_t kLeastVariety = 10;
/// Large enough to detect that the key of a file is too long.
constexpr std::size_t kReadSize = kMostKey + 1;

/// Returns the bits of a key file's mode that give access to users other than its owner and this
/// user. If an access list gives a file of root to this user, as systemd does for a credential, the
/// group's bits are the bound of that list (acl(5)).
mode_t others_bits(const struct stat& status) {
  const bool is_lent = ::geteuid() != 0 && status.st_uid == 0 && status.st_gid == 0;
  return (S_IRWXG | S_IRWXO) & ~(is_lent ? mode_t{S_IRGRP} : mode_t{0});
}

bool is_text(std::byte byte) {
  const auto c = std::to_integer<unsigned>(byte);
  return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t';
}

std::string how_to_make(const std::string& path) {
  return fmt::format("; make one by: (umask 077; openssl rand -out {} {})", path, kLeastKey);
}

}  // namespace

Key::Key(std::span<const std::byte> bytes) : size_(bytes.size()) {
  if (bytes.empty()) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  mapped_ = (bytes.size() + page - 1) / page * page;
  void* const pages =
      ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) core::throw_errno("no memory for a key");
  pages_ = static_cast<std::byte*>(pages);
  static_cast<void>(::madvise(pages_, mapped_, MADV_DONTDUMP));
  std::memcpy(pages_, bytes.data(), bytes.size());
}

Key::Key(Key&& other) noexcept
    : pages_(std::exchange(other.pages_, nullptr)),
      mapped_(std::exchange(other.mapped_, 0)),
      size_(std::exchange(other.size_, 0)) {}

Key& Key::operator=(Key&& other) noexcept {
  std::swap(pages_, other.pages_);
  std::swap(mapped_, other.mapped_);
  std::swap(size_, other.size_);
  return *this;
}

Key::~Key() {
  if (pages_ == nullptr) return;
  ::OPENSSL_cleanse(pages_, size_);
  ::munmap(pages_, mapped_);
}

Key Key::load(const std::string& path) {
  const std::string action = "cannot read the key file " + path;
  core::Fd fd;
  try {
    fd = core::open_regular_file(path, action);
  } catch (const Error& error) {
    if (error.system_errno() != ENOENT) throw;
    throw Error(error.code(), error.what() + how_to_make(path), error.cause());
  }
  struct stat status {};
  core::check_errno(::fstat(fd.get(), &status), action);
  if ((status.st_mode & others_bits(status)) != 0) {
    throw Error(ErrorCode::not_permitted,
                "the key file " + path + " is accessible to others than its owner: chmod 600 it");
  }
  Key key{std::vector<std::byte>(kReadSize)};
  std::size_t size = 0;
  while (size < kReadSize) {
    const auto part =
        core::check_errno(::read(fd.get(), key.pages_ + size, kReadSize - size), action);
    if (part == 0) break;
    size += static_cast<std::size_t>(part);
  }
  key.size_ = size;
  if (const std::string why = weakness(key.bytes()); !why.empty()) {
    throw Error(ErrorCode::invalid_value, "the key file " + path + " " + why + how_to_make(path));
  }
  return key;
}

std::string weakness(std::span<const std::byte> bytes) {
  if (bytes.size() < kLeastKey || bytes.size() > kMostKey) {
    return fmt::format("must have {} to {} bytes", kLeastKey, kMostKey);
  }
  if (bytes.size() < kLeastTextKey && std::ranges::all_of(bytes, is_text)) {
    return fmt::format("is text of {} characters, which may be guessed; text must have at least {}",
                       bytes.size(), kLeastTextKey);
  }
  std::bitset<256> values;
  std::bitset<256> steps;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto value = std::to_integer<std::uint8_t>(bytes[i]);
    values.set(value);
    if (i != 0) steps.set(static_cast<std::uint8_t>(value - std::to_integer<int>(bytes[i - 1])));
  }
  if (std::min(values.count(), steps.count()) < kLeastVariety) {
    return "repeats itself or counts, so it may be guessed";
  }
  return {};
}

Mac hmac(const Key& key, std::initializer_list<std::span<const std::byte>> parts) {
  std::vector<unsigned char> text;
  for (const auto part : parts) {
    const auto* const begin = reinterpret_cast<const unsigned char*>(part.data());
    text.insert(text.end(), begin, begin + part.size());
  }
  Mac mac{};
  unsigned size = mac.size();
  const auto secret = key.bytes();
  const auto* const made =
      ::HMAC(::EVP_sha256(), secret.data(), static_cast<int>(secret.size()), text.data(),
             text.size(), reinterpret_cast<unsigned char*>(mac.data()), &size);
  if (made == nullptr) throw Error(ErrorCode::unexpected, "HMAC-SHA256 failed");
  return mac;
}

std::string fingerprint(const Key& key) {
  constexpr std::string_view kLabel = "dpu-gpu-offload fingerprint";
  constexpr std::size_t kBytes = 8;
  std::string digits;
  const Mac mac = hmac(key, {std::as_bytes(std::span(kLabel))});
  for (const std::byte byte : std::span(mac).first(kBytes)) {
    digits += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  }
  return digits;
}

void randomize(std::span<std::byte> bytes) {
  // Up to 256 bytes are never truncated.
  core::check_errno(::getrandom(bytes.data(), bytes.size(), 0), "getrandom");
}

bool equal_in_secret(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace offload::comch
