#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>

#include "kernels/group.hpp"
#include "kernels/serve.hpp"

/// Runs the test bodies of this folder. A body is a function object that every lane of a group
/// calls with its group and its group's staging; it reads and writes memory of its runner.
/// HostRunner calls it on this thread, DeviceRunner (device_runner.cuh) on a warp or a block.
namespace offload::kernels::test {

class HostRunner {
 public:
  /// A body runs every kStride-th case of a long loop: more than 1 for a runner whose cases take
  /// long.
  static constexpr std::uint32_t kStride = 1;

  /// Returns why nothing can run here; empty if it can.
  static std::string unavailable() { return {}; }

  /// Memory of exactly this size, so that a checker sees every access beyond it.
  class Memory {
   public:
    explicit Memory(std::size_t bytes)
        : data_(static_cast<std::uint8_t*>(::operator new(bytes, kAlignment))) {
      std::memset(data_, 0, bytes);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { ::operator delete(data_, kAlignment); }
    [[nodiscard]] std::uint8_t* data() const { return data_; }

   private:
    static constexpr std::align_val_t kAlignment{kSlotAlignment};
    std::uint8_t* data_;
  };

  template <class Body>
  static void run(const Body& body) {
    Staging staging;
    body(SingleLane{}, staging);
  }
};

/// Memory of groups that run on the host.
struct HostPlace {
  using Memory = HostRunner::Memory;
  using Scratch = Memory;  ///< what groups alone use

  static void put(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
};

}  // namespace offload::kernels::test
