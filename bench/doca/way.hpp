#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/error.hpp"
#include "core/status.hpp"

namespace offload::bench {

/// The messages that are measured.
struct Load {
  std::size_t size = 64;
  std::uint32_t in_flight = 1;
};

/// One way to carry messages. All of it, both ends included, is on the caller's thread.
class Way {
 public:
  virtual ~Way() = default;
  /// Carries `count` messages, as many at a time as its load has in flight, and returns when all
  /// have arrived and all tasks have ended. Throws Error.
  virtual void carry(std::uint64_t count) = 0;
};

/// Makes a way for a load. Throws Error.
using MakeWay = std::unique_ptr<Way> (*)(const Load& load);

// By the objects: contexts of a progress::Engine, and their tasks.
std::unique_ptr<Way> messages_by_objects(const Load& load);
std::unique_ptr<Way> data_by_objects(const Load& load);
std::unique_ptr<Way> writes_by_objects(const Load& load);

// By the calls of DOCA's interface.
std::unique_ptr<Way> messages_by_calls(const Load& load);
std::unique_ptr<Way> data_by_calls(const Load& load);
std::unique_ptr<Way> writes_by_calls(const Load& load);

/// Counts the messages of one carry().
struct Count {
  std::uint64_t left = 0;       ///< to submit
  std::uint64_t in_flight = 0;  ///< submitted and not received, where take() counts it
  std::uint64_t ended = 0;      ///< tasks of the sender
  std::uint64_t received = 0;   ///< messages
  bool has_failed = false;      ///< a task has

  void begin(std::uint64_t count) noexcept { *this = {count, 0, 0, 0, false}; }
  /// Counts one more if it may be submitted while `most` are in flight. Returns whether it may.
  [[nodiscard]] bool take(std::uint64_t most) noexcept {
    if (left == 0 || in_flight == most) return false;
    --left;
    ++in_flight;
    return true;
  }
  void receive() noexcept {
    --in_flight;
    ++received;
  }
  /// Returns whether all `count` are done. Throws Error if a task has failed.
  [[nodiscard]] bool is_done(std::uint64_t count) const {
    if (has_failed) throw core::Error(core::ErrorCode::io_failed, "a task has failed");
    return ended == count && received == count;
  }
};

inline void check(core::Status status, const char* what) {
  if (!status.ok()) throw core::Error(status.error(), what);
}

/// The PCI addresses of the devices that stand in for a DPU and its host.
inline constexpr const char* kDpu = "0000:03:00.0";
inline constexpr const char* kHost = "0000:b1:00.0";
/// The memory of a consumer or a producer.
inline constexpr std::size_t kDataMemory = std::size_t{64} * 1024 * 1024;

}  // namespace offload::bench
