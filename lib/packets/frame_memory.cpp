#include "packets/frame_memory.hpp"

#include <fmt/core.h>
#include <sys/mman.h>

#include <bit>

#include "core/error.hpp"

namespace offload::packets {

constexpr std::uint32_t kMostHomes = 256;
constexpr std::uint32_t kMostFrames = 1U << 20;  // 2 GiB of 2 KiB, and rings of 16 MiB

FrameMemory::FrameMemory(const FrameSizes& sizes) : sizes_(sizes) {
  const bool right = (sizes.frame_bytes == 2048 || sizes.frame_bytes == 4096) &&
                     std::has_single_bit(sizes.frames_per_home) && sizes.homes != 0 &&
                     sizes.homes <= kMostHomes && sizes.frames_per_home <= kMostFrames &&
                     std::uint64_t{sizes.homes} * sizes.frames_per_home <= kMostFrames;
  if (!right) {
    throw core::Error(
        core::ErrorCode::invalid_value,
        fmt::format("frames: {} of {} bytes for each of {} homes are invalid; allowed is a power "
                    "of two of them, with 2048 or 4096 bytes each, and at most {} in total",
                    sizes.frames_per_home, sizes.frame_bytes, sizes.homes, kMostFrames));
  }
  const std::size_t bytes = std::size_t{frames()} * sizes.frame_bytes;
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (data == MAP_FAILED) core::throw_errno(fmt::format("mmap of {} bytes of frames", bytes));
  bytes_ = {static_cast<std::byte*>(data), bytes};
}

FrameMemory::~FrameMemory() {
  ::munmap(bytes_.data(), bytes_.size());
}

std::uint32_t FrameMemory::take_home() {
  if (taken_ == sizes_.homes) {
    throw core::Error(core::ErrorCode::full,
                      fmt::format("frames: all {} homes are in use", sizes_.homes));
  }
  return taken_++;
}

}  // namespace offload::packets
