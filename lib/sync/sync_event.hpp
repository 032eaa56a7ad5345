#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/fd.hpp"
#include "kernels/sync_event.hpp"
#include "memory/shared_memory.hpp"

namespace offload::sync {

/// The kind of publisher, which sets and adds.
enum class Publisher : std::uint8_t {
  cpu,  ///< threads of any process, which wake subscribers that sleep
  gpu,  ///< a GPU, which cannot: a subscriber that sleeps polls every 50 us
};

/// The way in which a subscriber waits.
enum class Wait : std::uint8_t {
  spin,   ///< lowest latency; keeps the processor
  yield,  ///< yields the processor between polls
  block,  ///< sleeps in futex(2), for long waits
};

/// A 64-bit counter to wait on, shared by the threads of this process, other processes (export and
/// import) and a GPU (words(), registered with it). Any thread may call get(), set(), add() and
/// wait_greater(); they do not allocate. set() and add() make a system call only if a subscriber
/// sleeps.
class SyncEvent {
 public:
  struct Options {
    std::string name = "sync-event";  ///< shows in /proc
    Publisher publisher = Publisher::cpu;
    int numa_node = -1;  ///< of its memory; -1: any
  };

  /// Starts at 0. Throws Error.
  explicit SyncEvent(const Options& options);

  /// What another process needs for import().
  struct Export {
    std::vector<std::byte> blob;
    int fd;  ///< to be passed beside the blob; owned by this event
  };
  [[nodiscard]] Export export_to_process() const;
  /// Maps an exported event. Throws Error: bad_message for a malformed blob, unsupported_version
  /// for one of another version, invalid_value for memory that is too small or could shrink.
  static SyncEvent import(std::span<const std::byte> blob, core::Fd fd);

  [[nodiscard]] std::uint64_t get() const noexcept { return kernels::sync_event_get(*words_); }
  void set(std::uint64_t value) noexcept;
  /// Returns the value before the addition.
  std::uint64_t add(std::uint64_t count) noexcept;

  /// Waits until get() > `threshold`; false if `limit` expires first.
  [[nodiscard]] bool wait_greater(std::uint64_t threshold, Wait how, core::Duration limit) noexcept;

  [[nodiscard]] Publisher publisher() const noexcept { return publisher_; }
  /// The memory, to be registered with a device; the words are at its start.
  [[nodiscard]] const memory::SharedMemory& memory() const noexcept { return memory_; }
  [[nodiscard]] kernels::SyncEventWords& words() const noexcept { return *words_; }

 private:
  SyncEvent(Publisher publisher, memory::SharedMemory memory);
  void wake_sleepers() noexcept;
  void sleep(std::uint64_t threshold, core::TimePoint deadline) noexcept;

  Publisher publisher_;
  memory::SharedMemory memory_;
  kernels::SyncEventWords* words_;
};

}  // namespace offload::sync
