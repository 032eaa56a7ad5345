#include "tasks/memory/buffer_array.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include "core/error.hpp"

namespace offload::memory {
namespace {

using core::Error;
using core::ErrorCode;

/// Bytes from the start of the first element to the end of the last.
std::size_t checked_length(const ArrayShape& shape) {
  if (shape.element_size == 0 || shape.count == 0 || shape.stride < shape.element_size) {
    throw Error(ErrorCode::invalid_value,
                "an array of buffers needs elements that are not empty and do not overlap");
  }
  const std::size_t before_last = shape.count - 1;
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  if (before_last > (kMost - shape.element_size) / shape.stride) {
    throw Error(ErrorCode::invalid_value, "the array of buffers exceeds the address space");
  }
  return before_last * shape.stride + shape.element_size;
}

std::string array_of(const MemoryRegion& region) {
  return "buffer array of memory region '" + region.name() + "'";
}

}  // namespace

BufferArray::BufferArray(MemoryRegion& region, std::byte* base, ArrayShape shape)
    : region_(&region), base_(base), shape_(shape), length_(checked_length(shape)) {}

BufferArray::~BufferArray() {
  if (started_) region_->remove_user();
}

void BufferArray::start() {
  if (started_) core::throw_bad_state(array_of(*region_), "started", "start");
  region_->require_started("have a buffer array");
  if (!region_->find(base_, length_)) {
    throw Error(ErrorCode::invalid_value, array_of(*region_) + ": its " + std::to_string(length_) +
                                              " bytes are in no range of the region");
  }
  region_->add_user();
  started_ = true;
}

void BufferArray::stop() {
  if (!started_) core::throw_bad_state(array_of(*region_), "stopped", "stop");
  region_->remove_user();
  started_ = false;
}

kernels::BufferArrayView BufferArray::view() const {
  if (!started_) core::throw_bad_state(array_of(*region_), "stopped", "be looked at");
  return {reinterpret_cast<std::uint8_t*>(base_), shape_.element_size, shape_.stride, shape_.count};
}

kernels::BufferArrayView BufferArray::view(const Registrar& registrar) const {
  kernels::BufferArrayView keyed = view();
  const auto range = region_->find(base_, length_);
  const MemoryKey* const key = range ? region_->key(registrar, *range) : nullptr;
  if (key == nullptr) {
    throw Error(ErrorCode::not_found,
                array_of(*region_) + " is not registered with " + registrar.name());
  }
  keyed.lkey = key->local;
  keyed.rkey = key->remote;
  return keyed;
}

}  // namespace offload::memory
