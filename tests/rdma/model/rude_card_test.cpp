#include <gtest/gtest.h>

#include <algorithm>

#include "tests/rdma/model/card_fixture.hpp"
#include "tests/support/bytes.hpp"

namespace offload::rdma::model::test {
namespace {

// It does everything late, and not at the same time, but once each and in order.
TEST_F(CardTest, ARudeCardDoesAllInTheEnd) {
  card_.set_rude(11);
  const auto data = support::random_bytes(here_.bytes().size(), 6);
  std::copy(data.begin(), data.end(), here_.bytes().begin());
  const rdma::LocalBuffer buffer = here_.local(0, 1000);
  bool was_late = false;
  for (std::uint32_t i = 0; i < 100; ++i) {
    rdma::SendWork work;
    work.opcode = rdma::Opcode::rdma_write;
    work.flags = rdma::kSignaled;
    work.remote = there_.remote(i);
    work.buffers = &buffer;
    work.buffer_count = 1;
    ASSERT_EQ(one_.post(work), rdma::Posted::done);
    ASSERT_EQ(one_.post({.flags = rdma::kSignaled}), rdma::Posted::done);
    one_.publish();
    for (std::uint32_t done = 0, tries = 0; done < 2; ++tries) {
      ASSERT_LT(tries, 1000U);
      card_.progress();
      const auto completion = one_.poll();
      was_late = was_late || (tries > 1 && !completion);
      if (!completion) continue;
      EXPECT_EQ(completion->counter, 2 * i + done++);
      EXPECT_TRUE(std::equal(data.begin(), data.begin() + 1000, &there_.bytes()[i]));
    }
    std::fill_n(&there_.bytes()[i], 1000, std::byte{});
  }
  EXPECT_TRUE(was_late);
}

}  // namespace
}  // namespace offload::rdma::model::test
