#pragma once

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <cstdint>
#include <string_view>

#include "core/fd.hpp"

namespace offload::support {

/// A real dma-buf, of the kernel's driver for a graphics card that is memory alone (vgem). Its
/// owner has mapped it. If a step fails, errno says why and is_made() is false.
class VgemBuffer {
 public:
  static constexpr std::size_t kBytes = 64UL << 10;
  static constexpr const char* kPath = "/dev/dri/card0";

  explicit VgemBuffer(const core::Fd& card) {
    CreateDumb create;
    create.height = kBytes / 4096;
    create.width = 1024;
    create.bits_a_pixel = 32;
    if (::ioctl(card.get(), kCreateDumb, &create) != 0 || create.size != kBytes) return;
    MapDumb map;
    map.handle = create.handle;
    if (::ioctl(card.get(), kMapDumb, &map) != 0) return;
    void* const mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, card.get(),
                                static_cast<off_t>(map.offset));
    if (mapped == MAP_FAILED) return;
    owners_ = static_cast<char*>(mapped);
    PrimeHandle prime;
    prime.handle = create.handle;
    prime.flags = O_CLOEXEC | O_RDWR;
    if (::ioctl(card.get(), kPrimeHandleToFd, &prime) == 0) dma_buf_ = core::Fd(prime.fd);
  }
  VgemBuffer(const VgemBuffer&) = delete;
  VgemBuffer& operator=(const VgemBuffer&) = delete;
  ~VgemBuffer() {
    if (owners_ != nullptr) ::munmap(owners_, kBytes);
  }

  [[nodiscard]] bool is_made() const { return dma_buf_.valid(); }
  [[nodiscard]] int fd() const { return dma_buf_.get(); }
  /// Returns the bytes as their owner sees them.
  [[nodiscard]] char* owners() const { return owners_; }

 private:
  // <drm/drm.h> and <drm/drm_mode.h>, which are not among the headers of the kernel's own package.
  struct CreateDumb {
    std::uint32_t height = 0, width = 0, bits_a_pixel = 0, flags = 0, handle = 0, pitch = 0;
    std::uint64_t size = 0;
  };
  struct MapDumb {
    std::uint32_t handle = 0, pad = 0;
    std::uint64_t offset = 0;
  };
  struct PrimeHandle {
    std::uint32_t handle = 0, flags = 0;
    std::int32_t fd = -1;
  };
  static constexpr unsigned long kCreateDumb = _IOWR('d', 0xB2, CreateDumb);
  static constexpr unsigned long kMapDumb = _IOWR('d', 0xB3, MapDumb);
  static constexpr unsigned long kPrimeHandleToFd = _IOWR('d', 0x2D, PrimeHandle);

  char* owners_ = nullptr;
  core::Fd dma_buf_;
};

}  // namespace offload::support
