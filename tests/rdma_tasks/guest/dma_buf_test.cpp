#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "tests/rdma_tasks/guest/fixture.hpp"
#include "tests/support/vgem_buffer.hpp"

/// Regions of real dma-bufs.
namespace offload::rdma {
namespace {

class DmaBufTest : public DeviceTest {
 protected:
  static constexpr std::size_t kBytes = support::VgemBuffer::kBytes;

  void SetUp() override {
    const core::Fd card(::open(support::VgemBuffer::kPath, O_RDWR | O_CLOEXEC));
    if (!card.valid()) GTEST_SKIP() << "/dev/dri/card0: " << core::describe_errno(errno);
    buffer_.emplace(card);
    ASSERT_TRUE(buffer_->is_made()) << core::describe_errno(errno);
  }
  [[nodiscard]] core::Fd duplicate() const {
    return core::Fd(::fcntl(buffer_->fd(), F_DUPFD_CLOEXEC, 0));
  }
  /// Returns the bytes as their owner sees them.
  [[nodiscard]] std::string_view owners(std::size_t offset, std::size_t length) const {
    return {buffer_->owners() + offset, length};
  }

  std::optional<support::VgemBuffer> buffer_;
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
