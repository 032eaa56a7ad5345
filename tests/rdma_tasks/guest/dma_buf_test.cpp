#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "tests/rdma_tasks/guest/fixture.hpp"

/// Real dma-bufs, of the kernel's driver for a graphics card that is memory alone (vgem).
namespace offload::rdma {
namespace {

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
constexpr unsigned long kCreateDumb = _IOWR('d', 0xB2, CreateDumb);
constexpr unsigned long kMapDumb = _IOWR('d', 0xB3, MapDumb);
constexpr unsigned long kPrimeHandleToFd = _IOWR('d', 0x2D, PrimeHandle);

class DmaBufTest : public DeviceTest {
 protected:
  static constexpr std::size_t kBytes = 64UL << 10;

  void SetUp() override {
    const core::Fd card(::open("/dev/dri/card0", O_RDWR | O_CLOEXEC));
    if (!card.valid()) GTEST_SKIP() << "/dev/dri/card0: " << core::describe_errno(errno);
    CreateDumb create;
    create.height = kBytes / 4096;
    create.width = 1024;
    create.bits_a_pixel = 32;
    ASSERT_EQ(::ioctl(card.get(), kCreateDumb, &create), 0) << core::describe_errno(errno);
    ASSERT_EQ(create.size, kBytes);
    MapDumb map;
    map.handle = create.handle;
    ASSERT_EQ(::ioctl(card.get(), kMapDumb, &map), 0) << core::describe_errno(errno);
    void* const mapped =
        ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, card.get(), static_cast<off_t>(map.offset));
    ASSERT_NE(mapped, MAP_FAILED) << core::describe_errno(errno);
    owners_ = static_cast<const char*>(mapped);
    PrimeHandle prime;
    prime.handle = create.handle;
    prime.flags = O_CLOEXEC | O_RDWR;
    ASSERT_EQ(::ioctl(card.get(), kPrimeHandleToFd, &prime), 0) << core::describe_errno(errno);
    dma_buf_ = core::Fd(prime.fd);
  }
  void TearDown() override {
    if (owners_ != nullptr) ::munmap(const_cast<char*>(owners_), kBytes);
  }
  [[nodiscard]] core::Fd duplicate() const {
    return core::Fd(::fcntl(dma_buf_.get(), F_DUPFD_CLOEXEC, 0));
  }
  /// The bytes, as their owner sees them.
  [[nodiscard]] std::string_view owners(std::size_t offset, std::size_t length) const {
    return {owners_ + offset, length};
  }

  const char* owners_ = nullptr;
  core::Fd dma_buf_;
};

TEST_F(DmaBufTest, IsMappedPassedAndMappedAgain) {
  memory::MemoryRegion region({"dma-buf"},
                              {memory::map_dma_buf_range(duplicate(), 4096, 8192, true)});
  region.start();
  std::memcpy(region.ranges()[0].address, "here", 4);
  EXPECT_EQ(owners(4096, 4), "here");
  auto passed = memory::export_region(region, memory::kLocalAccess);
  const auto imported = memory::import_region("again", passed.blob, std::move(passed.fds));
  EXPECT_EQ(imported.ranges()[0].location, memory::Location::shared);
  EXPECT_EQ(imported.ranges()[0].descriptor.offset, 4096U);
  EXPECT_EQ(std::memcmp(imported.ranges()[0].address, "here", 4), 0);
  EXPECT_THROW(memory::map_dma_buf_range(duplicate(), 4096, kBytes, true), core::Error);
}

TEST_F(DmaBufTest, IsReservedWithoutAMapping) {
  const auto range = memory::reserve_dma_buf_range(duplicate(), 0, kBytes, true);
  EXPECT_EQ(range.location, memory::Location::device);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const core::Fd from(ends[0]);
  const core::Fd to(ends[1]);
  EXPECT_EQ(::write(to.get(), range.address, 1), -1);  // the processor does not reach it
  EXPECT_EQ(errno, EFAULT);
  memory::MemoryRegion region({"dma-buf"}, {range});
  region.start();
  EXPECT_EQ(region.find(range.address + kBytes - 1, 1), 0U);
  region.stop();
}

TEST_F(DmaBufTest, IsRegisteredOrRefusedWithAReason) {
  memory::MemoryRegion region({"dma-buf", memory::kLocalAccess | memory::kRemoteAccess},
                              {memory::map_dma_buf_range(duplicate(), 0, kBytes, true)});
  region.add_registrar(registrar_);
  try {
    region.start();
    EXPECT_NE(region.key(registrar_, 0), nullptr);
    region.stop();
  } catch (const core::Error& error) {
    EXPECT_NE(std::string(error.what()).find("by its dma-buf: "), std::string::npos);
    EXPECT_FALSE(domain_.supports_dma_buf()) << error.what();
  }
}

}  // namespace
}  // namespace offload::rdma
