#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/module/service_interface.hpp"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

namespace offload::kernels {

/// The memory that a service's object has where it serves, until that is gone.
class ServiceMemory {
 public:
  explicit ServiceMemory(std::int32_t device) : device_(device) {}
  ServiceMemory& operator=(ServiceMemory&&) = delete;
  ~ServiceMemory() {
    for (void* const piece : pieces_) release(piece);
  }

  [[nodiscard]] std::int32_t device() const { return device_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  /// `bytes` of it, all zero, aligned to 256. Throws std::exception.
  void* allocate(std::uint64_t bytes) {
    pieces_.reserve(pieces_.size() + 1);
    void* piece = nullptr;
    const std::uint64_t rounded = (bytes / kAlignment + 1) * kAlignment;
    if (device_ == kOnCpu) {
      piece = std::aligned_alloc(kAlignment, rounded);
      if (piece == nullptr) throw std::bad_alloc();
      std::memset(piece, 0, rounded);
    } else {
#if defined(__CUDACC__)
      check(cudaMalloc(&piece, rounded), "cudaMalloc");
      pieces_.push_back(piece);
      check(cudaMemset(piece, 0, rounded), "cudaMemset");
      bytes_ += rounded;
      return piece;
#endif
    }
    pieces_.push_back(piece);
    bytes_ += rounded;
    return piece;
  }

  /// Copies into what allocate() returned.
  void fill(void* to, const void* from, std::uint64_t bytes) const {
    if (device_ == kOnCpu) {
      std::memcpy(to, from, bytes);
    } else {
#if defined(__CUDACC__)
      check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
#endif
    }
  }

 private:
  static constexpr std::uint64_t kAlignment = 256;

#if defined(__CUDACC__)
  static void check(cudaError_t status, const char* action) {
    if (status == cudaSuccess) return;
    throw std::runtime_error(std::string(action) + ": " + cudaGetErrorString(status));
  }
#endif

  void release(void* piece) const {
    if (device_ == kOnCpu) return std::free(piece);
#if defined(__CUDACC__)
    // Ignored: the device fails all calls after a kernel has failed.
    static_cast<void>(cudaFree(piece));
#endif
  }

  std::int32_t device_;
  std::uint64_t bytes_ = 0;
  std::vector<void*> pieces_;
};

/// Passed to make() of a service: gives it the options of the command line, and memory on its
/// device.
class ServiceSetup {
 public:
  ServiceSetup(ServiceMaking& making, ServiceMemory& memory) : making_(&making), memory_(&memory) {}

  /// Returns whether the object is for a GPU.
  [[nodiscard]] bool on_gpu() const { return memory_->device() != kOnCpu; }

  /// The value of --service-option KEY=VALUE, the last one said; null if none was.
  [[nodiscard]] const char* find(const char* key) const {
    const char* value = nullptr;
    for (std::size_t i = 0; i < making_->option_count; ++i) {
      ServiceOption& option = making_->options[i];
      if (std::strcmp(option.key, key) != 0) continue;
      option.read = true;
      value = option.value;
    }
    return value;
  }
  /// The same where there must be one. Throws std::invalid_argument.
  [[nodiscard]] std::string option(const char* key) const {
    const char* const value = find(key);
    if (value == nullptr) {
      throw std::invalid_argument("it needs --service-option " + std::string(key) + "=...");
    }
    return value;
  }
  [[nodiscard]] std::string option(const char* key, const char* otherwise) const {
    const char* const value = find(key);
    return value != nullptr ? value : otherwise;
  }

  /// Room for `count` elements where the service will serve, all zero: device memory for a GPU,
  /// which this thread cannot read. Freed with the object. Throws std::exception.
  template <class Element>
  [[nodiscard]] Element* allocate(std::size_t count) const {
    static_assert(std::is_trivially_copyable_v<Element>, "it is copied to a GPU as bytes");
    if (count > UINT64_MAX / 2 / sizeof(Element)) throw std::bad_alloc();
    return static_cast<Element*>(memory_->allocate(count * sizeof(Element)));
  }
  /// The same with a copy of `elements`, std::vector or another container of one piece.
  template <class Container>
  [[nodiscard]] auto copy(const Container& elements) const {
    using Element = std::remove_cv_t<std::remove_pointer_t<decltype(elements.data())>>;
    Element* const to = allocate<Element>(elements.size());
    memory_->fill(to, elements.data(), elements.size() * sizeof(Element));
    return static_cast<const Element*>(to);
  }

 private:
  ServiceMaking* making_;
  ServiceMemory* memory_;
};

}  // namespace offload::kernels
