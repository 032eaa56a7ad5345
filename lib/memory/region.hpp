#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "memory/access.hpp"
#include "memory/pinning.hpp"
#include "memory/range.hpp"
#include "memory/registrar.hpp"

namespace offload::memory {

struct RegionOptions {
  std::string name;  ///< for errors
  Access access = kLocalAccess;
};

/// Memory that devices and peers may be let into: ranges, what may be done with them, and the
/// devices they are registered with. One life, which may be gone through again: ranges and
/// registrars are added, start, buffers are made from it, stop.
///
/// One thread makes, starts and stops it. While it is started, the functions marked "any thread"
/// may be called from any.
class MemoryRegion {
 public:
  /// Throws Error as check_access and add_range do.
  explicit MemoryRegion(RegionOptions options, const std::vector<Range>& ranges = {});
  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;
  /// Stops; logs if buffers are still out, whose memory this takes away.
  ~MemoryRegion();

  /// Takes a range in and returns its number. Throws Error: bad_state while started, full
  /// after kMaxRanges, not_permitted if the region may be written and the range may not,
  /// invalid_value for a range that is empty or overlaps another.
  std::size_t add_range(Range range);

  /// Has start register every range with `registrar`, which outlives the region. Throws Error:
  /// bad_state while started, already_exists.
  void add_registrar(Registrar& registrar);

  /// Brings the memory in, locks it where the system allows, and registers it. Throws Error:
  /// bad_state, invalid_value without a range, and what a registrar throws; then it is stopped, and
  /// nothing is registered.
  void start();

  /// Deregisters. Throws Error: bad_state; in_use while buffers, pools or arrays of it are out, and
  /// the region stays started. No thread may be about to make one.
  void stop();

  /// Throws Error (bad_state) unless it is started: "...: cannot `action`".
  void require_started(const char* action) const;

  [[nodiscard]] const std::string& name() const noexcept { return options_.name; }
  [[nodiscard]] Access access() const noexcept { return options_.access; }
  [[nodiscard]] std::span<const Range> ranges() const noexcept { return ranges_; }

  /// Any thread.
  [[nodiscard]] bool started() const noexcept { return started_; }

  /// The number of the range that [address, address + length) lies in wholly, if there is one. Any
  /// thread.
  [[nodiscard]] std::optional<std::size_t> find(const std::byte* address,
                                                std::size_t length) const noexcept;

  /// By what the registrar's device knows a range; null while stopped, and for a registrar or range
  /// that is not this region's. Any thread.
  [[nodiscard]] const Key* key(const Registrar& registrar, std::size_t range) const noexcept;

  /// A user (a buffer, a pool, an array) keeps the region from being stopped. Any thread.
  void add_user() noexcept { users_.fetch_add(1, std::memory_order_relaxed); }
  /// Release: pairs with users(), so that what was done with the memory is over before it goes.
  void remove_user() noexcept { users_.fetch_sub(1, std::memory_order_release); }
  [[nodiscard]] std::size_t users() const noexcept {
    return users_.load(std::memory_order_acquire);
  }

 private:
  [[nodiscard]] std::string described() const;
  void require_stopped(const char* action) const;
  void register_all();
  [[nodiscard]] Key register_with(Registrar& registrar, std::size_t range) const;
  void deregister_all() noexcept;

  RegionOptions options_;
  std::vector<Range> ranges_;
  std::vector<Registrar*> registrars_;
  /// While started.
  std::vector<Pinning> pinnings_;
  /// While started: of range r and the registrar at place g, at r * registrars + g.
  std::vector<Key> keys_;
  bool started_ = false;
  std::atomic<std::size_t> users_{0};
};

}  // namespace offload::memory
