#include <fcntl.h>

#include "tests/softcard/fixture.hpp"
#include "tests/support/vgem_buffer.hpp"

/// Memory of dma-bufs, as that of a GPU is.
namespace offload::softcard::test {
namespace {

TEST_F(SoftcardTest, AMemoryBeginsInTheMiddleOfADmaBuf) {
  constexpr std::uint64_t kBase = 0x10'0000;
  const core::Fd driver(::open(support::VgemBuffer::kPath, O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(driver.valid()) << "/dev/dri/card0: " << std::strerror(errno);
  const support::VgemBuffer buffer(driver);
  ASSERT_TRUE(buffer.is_made()) << std::strerror(errno);
  for (const std::uint64_t offset : {0U, 8U, 4096U, 5000U, 12288U}) {
    SCOPED_TRACE(offset);
    const std::uint64_t length = support::VgemBuffer::kBytes - offset;
    const auto memory = held(
        ibv_reg_dmabuf_mr(domain_.get(), offset, length, kBase + offset, buffer.fd(), Memory::kAll),
        ibv_dereg_mr, "a memory");
    here_.fill(offset + 1);
    ibv_send_wr request = work(IBV_WR_RDMA_WRITE);
    request.wr.rdma = {kBase + offset, memory->rkey};
    ASSERT_EQ(go(request, {here_.piece(0, static_cast<std::uint32_t>(length))}).status,
              IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(buffer.owners() + offset, here_.bytes().data(), length), 0);
  }
}

}  // namespace
}  // namespace offload::softcard::test
