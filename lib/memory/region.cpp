#include "memory/region.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::memory {
namespace {

using core::Error;
using core::ErrorCode;

std::uintptr_t number(const std::byte* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}

bool overlap(const Range& a, const Range& b) noexcept {
  // Compares a distance with a length: a sum of address and length could overflow.
  const Range& first = number(a.address) < number(b.address) ? a : b;
  const Range& second = &first == &a ? b : a;
  return number(second.address) - number(first.address) < first.length;
}

bool lies_in(const Range& range, const std::byte* address, std::size_t length) noexcept {
  const std::uintptr_t begin = number(range.address);
  return number(address) >= begin && length <= range.length &&
         number(address) - begin <= range.length - length;
}

}  // namespace

MemoryRegion::MemoryRegion(RegionOptions options, const std::vector<Range>& ranges)
    : options_(std::move(options)) {
  check_access(options_.access);
  for (const Range& range : ranges) add_range(range);
}

MemoryRegion::~MemoryRegion() {
  if (!started_) return;
  if (const std::size_t count = users(); count != 0) {
    core::log_error("memory region '{}' ends while {} of its buffers, pools or arrays are in use",
                    options_.name, count);
  }
  deregister_all();
}

std::size_t MemoryRegion::add_range(Range range) {
  require_stopped("add a range");
  check_range(range);
  if (ranges_.size() == kMaxRanges) {
    throw Error(ErrorCode::full,
                described() + " has " + std::to_string(kMaxRanges) + " ranges already");
  }
  if (includes(access(), Access::local_write) && !range.writable) {
    throw Error(ErrorCode::not_permitted,
                described() + " is writable: it cannot have a read-only range");
  }
  if (std::any_of(ranges_.begin(), ranges_.end(),
                  [&](const Range& other) { return overlap(range, other); })) {
    throw Error(ErrorCode::invalid_value, described() + " already has a part of that range");
  }
  ranges_.push_back(std::move(range));
  return ranges_.size() - 1;
}

void MemoryRegion::add_registrar(Registrar& registrar) {
  require_stopped("add a registrar");
  if (std::find(registrars_.begin(), registrars_.end(), &registrar) != registrars_.end()) {
    throw Error(ErrorCode::already_exists, described() + " has " + registrar.name() + " already");
  }
  registrars_.push_back(&registrar);
}

void MemoryRegion::remove_registrar(Registrar& registrar) {
  require_stopped("remove a registrar");
  if (std::erase(registrars_, &registrar) == 0) {
    throw Error(ErrorCode::not_found, described() + " does not have " + registrar.name());
  }
}

void MemoryRegion::start() {
  require_stopped("start");
  if (ranges_.empty()) throw Error(ErrorCode::invalid_value, described() + " has no range");
  pinnings_ = pin_all(ranges_, described());
  try {
    register_all();
  } catch (...) {
    deregister_all();
    throw;
  }
  started_ = true;
  if (ranges_.size() == 1 && registrars_.size() == 1) sole_registrar_ = registrars_.front();
}

void MemoryRegion::stop() {
  require_started("stop");
  if (const std::size_t count = users(); count != 0) {
    throw Error(ErrorCode::in_use, described() + " cannot stop: " + std::to_string(count) +
                                       " of its buffers, pools or arrays are in use");
  }
  deregister_all();
  started_ = false;
  sole_registrar_ = nullptr;
}

void MemoryRegion::register_all() {
  keys_.reserve(ranges_.size() * registrars_.size());
  for (std::size_t range = 0; range < ranges_.size(); ++range) {
    for (Registrar* registrar : registrars_) keys_.push_back(register_with(*registrar, range));
  }
}

MemoryKey MemoryRegion::register_with(Registrar& registrar, std::size_t range) const {
  try {
    if (is_elsewhere(ranges_[range].location)) {
      throw Error(ErrorCode::not_supported, "it is memory of another process");
    }
    return registrar.register_range(ranges_[range], access());
  } catch (const Error& error) {
    throw Error(error.code(),
                described() + ": " + registrar.name() + " does not register range " +
                    std::to_string(range) + ": " + error.what(),
                error.cause());
  }
}

void MemoryRegion::deregister_all() noexcept {
  for (; !keys_.empty(); keys_.pop_back()) {
    const std::size_t last = keys_.size() - 1;
    registrars_[last % registrars_.size()]->deregister(ranges_[last / registrars_.size()],
                                                       keys_.back());
  }
  pinnings_.clear();
}

std::optional<std::size_t> MemoryRegion::find(const std::byte* address,
                                              std::size_t length) const noexcept {
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    if (lies_in(ranges_[i], address, length)) return i;
  }
  return std::nullopt;
}

const MemoryKey* MemoryRegion::key_of_any(const Registrar& registrar,
                                          std::size_t range) const noexcept {
  if (!started_ || range >= ranges_.size()) return nullptr;
  const auto place = std::find(registrars_.begin(), registrars_.end(), &registrar);
  if (place == registrars_.end()) return nullptr;
  return &keys_[range * registrars_.size() + static_cast<std::size_t>(place - registrars_.begin())];
}

void MemoryRegion::require_stopped(const char* action) const {
  if (started_) core::throw_bad_state(described(), "started", action);
}

void MemoryRegion::require_started(const char* action) const {
  if (!started_) core::throw_bad_state(described(), "stopped", action);
}

}  // namespace offload::memory
