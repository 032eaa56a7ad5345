#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "progress/context.hpp"
#include "progress/task.hpp"
#include "tasks/memory/buffer.hpp"

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace offload::digest {

class DigestContext;

enum class Algorithm : std::uint8_t { sha1, sha256, sha512 };

/// "SHA-1", "SHA-256", "SHA-512"
std::string_view name_of(Algorithm algorithm) noexcept;

/// A task that hashes the data of `source`, a buffer or a list of them. It holds the buffers from
/// when they are set until they are replaced or the task is released; their data stays unchanged
/// until it is done.
class DigestTask final : public progress::Task {
 public:
  using ContextType = DigestContext;

  memory::BufferRef source;

  /// Result of a success: as many bytes as the algorithm has.
  [[nodiscard]] std::span<const std::byte> digest() const noexcept {
    return std::span(digest_).first(size_);
  }
  /// The same in hexadecimal, lower case.
  [[nodiscard]] std::string hex() const;

  /// Drops the buffers; called by the pool.
  void let_go() noexcept { source.reset(); }

 private:
  friend DigestContext;
  static constexpr std::size_t kMostBytes = 64;
  std::array<std::byte, kMostBytes> digest_{};
  std::size_t size_ = 0;
};

/// A context that hashes by OpenSSL, with the processor's instructions for it where there are some,
/// on the thread of its engine: kBytesAtOnce a turn, so that others on the engine get theirs. Tasks
/// end in the order of their submission. All calls from the engine's thread.
///
/// Submission returns invalid_value without a source; not_supported for one of more than
/// kMostElements buffers, and for memory at Location::device. A task whose source gets another
/// length meanwhile ends with bad_state.
class DigestContext final : public progress::Context {
 public:
  /// Some hundreds of microseconds of hashing: how long others on the engine may wait.
  static constexpr std::size_t kBytesAtOnce = 256UL * 1024;
  static constexpr std::size_t kMostElements = 64;

  explicit DigestContext(Algorithm algorithm, std::string name = "digest");
  ~DigestContext() override;

  /// The bytes of a digest.
  [[nodiscard]] static std::size_t size_of(Algorithm algorithm) noexcept;

 private:
  struct Free {
    void operator()(evp_md_ctx_st* state) const noexcept;
  };

  Step on_start() override;
  Step on_stop() noexcept override;
  core::Status on_submit(progress::Task& task) noexcept override;
  bool on_poll(std::size_t most) override;

  [[nodiscard]] bool begin(const DigestTask& task) noexcept;
  [[nodiscard]] std::size_t hash_piece(std::size_t most) noexcept;
  [[nodiscard]] core::Status finish(DigestTask& task) noexcept;

  Algorithm algorithm_;
  std::unique_ptr<evp_md_ctx_st, Free> state_;  ///< while it is not idle

  // Progress of the first task in flight.
  const memory::Buffer* element_ = nullptr;  ///< to be read; null: not begun
  std::size_t offset_ = 0;                   ///< in that element's data
  std::size_t left_ = 0;                     ///< bytes
  bool failed_ = false;                      ///< OpenSSL has refused
};

}  // namespace offload::digest
