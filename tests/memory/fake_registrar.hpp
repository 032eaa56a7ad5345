#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "memory/registrar.hpp"

namespace offload::memory {

/// A device that keeps a list of what it was told.
class FakeRegistrar : public Registrar {
 public:
  explicit FakeRegistrar(std::string name, std::uint32_t first_key = 100)
      : name_(std::move(name)), next_key_(first_key) {}

  [[nodiscard]] std::string name() const override { return name_; }

  Key register_range(const Range& range, Access access) override {
    if (registered_.size() == capacity) {
      throw core::Error(core::ErrorCode::driver, "no room",
                        {core::Cause::Domain::work_completion, 5, 6});
    }
    registered_.push_back(range.address);
    last_access = access;
    const std::uint32_t key = next_key_++;
    return {key, key + 1000, this};
  }

  void deregister(const Range& range, const Key& key) noexcept override {
    order_is_reversed = order_is_reversed && !registered_.empty() &&
                        registered_.back() == range.address && key.handle == this;
    if (!registered_.empty()) registered_.pop_back();
  }

  [[nodiscard]] std::size_t count() const { return registered_.size(); }

  std::size_t capacity = 1000;
  Access last_access = Access::none;
  /// So far, and each key was of this registrar.
  bool order_is_reversed = true;

 private:
  std::string name_;
  std::uint32_t next_key_;
  std::vector<const std::byte*> registered_;
};

}  // namespace offload::memory
