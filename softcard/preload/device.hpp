#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

#include "softcard/card/card.hpp"
#include "softcard/preload/gpu_mirrors.hpp"
#include "softcard/preload/loopback_wire.hpp"
#include "softcard/program/registers.hpp"

namespace offload::softcard {

/// The RDMA device of this process: a card in memory, with a thread that serves it while a context
/// of the device is open. Objects have numbers. Any thread; calls throw Error, except those that
/// remove.
class Device {
 public:
  /// Returns the device, which is never destroyed: programs may use it until their end.
  static Device& instance();
  Device& operator=(Device&&) = delete;

  void open();
  void close() noexcept;

  /// Returns the device's only GID, an address of IPv4.
  [[nodiscard]] std::array<std::uint8_t, 16> gid() const;

  std::uint32_t add_domain();
  /// Memory for queues.
  std::uint32_t add_space(void* address, std::size_t size);
  void remove_space(std::uint32_t number) noexcept;
  /// Memory under a key, for local and remote use. `access`: of ibv_access_flags.
  std::uint32_t add_region(std::uint32_t domain, std::uint64_t first, void* address,
                           std::size_t length, unsigned access);
  void remove_region(std::uint32_t key) noexcept;
  /// A page of registers, which outlives its number.
  std::uint32_t add_registers(std::span<std::byte> page);
  void remove_registers(std::uint32_t number) noexcept;

  /// Carries out commands of the card (devx), of 272 bytes at least.
  std::uint32_t make_completions(const void* command);
  std::uint32_t make_pair(const void* command);
  void change_pair(std::uint32_t number, const void* command);
  void remove_completions(std::uint32_t number) noexcept;
  void remove_pair(std::uint32_t number) noexcept;

 private:
  struct Pair {
    std::uint32_t registers;
    model::State state = model::State::reset;
  };
  /// The lock of a caller, for which the device's thread makes way.
  class Call;

  using Clock = std::chrono::steady_clock;

  Device();

  void run() noexcept;
  bool turn();
  void report();
  void forget(std::span<std::byte> bytes) noexcept { mirrors_.remove(bytes); }
  std::byte* part_of(std::uint32_t space, std::uint64_t offset, std::size_t bytes,
                     std::size_t alignment) const;

  mutable std::mutex mutex_;
  std::atomic<std::uint32_t> callers_{0};
  std::atomic<bool> ends_{false};
  std::uint32_t contexts_ = 0;
  std::thread thread_;

  model::Card card_{rdma::Reading::as_card};
  GpuMirrors mirrors_;
  std::optional<LoopbackWire> wire_;
  bool has_told_fault_ = false;
  Clock::duration report_every_{};  ///< 0: no reports
  Clock::time_point next_report_;
  std::uint32_t next_ = 0x40;
  std::map<std::uint32_t, std::span<std::byte>> spaces_;
  std::map<std::uint32_t, std::span<std::byte>> regions_;
  std::map<std::uint32_t, Registers> registers_;
  std::map<std::uint32_t, Pair> pairs_;
};

}  // namespace offload::softcard
