#include "kernels/rdma_tasks/receive.hpp"

#include <gtest/gtest.h>

#include "kernels/group.hpp"
#include "tests/rdma/model/card_fixture.hpp"

namespace offload::rdma::model::test {
namespace {

class PostReceivesTest : public CardTest {};

// A card takes a length of 0 as 2^31.
TEST_F(PostReceivesTest, OneWithoutBytesTakesNoData) {
  rdma::ExclusiveReceives receives{other_.receive};
  ASSERT_EQ(rdma::post_receives(kernels::SingleLane{}, receives, 1,
                                [&](std::uint32_t) { return there_.local(0, 0); }),
            rdma::WorkResult::done);
  const rdma::LocalBuffer buffer = here_.local(0, 8);
  rdma::SendWork work;
  work.opcode = rdma::Opcode::send;
  work.flags = rdma::kSignaled;
  work.buffers = &buffer;
  work.buffer_count = 1;
  go(work);
  EXPECT_EQ(one_.poll().value().syndrome, rdma::Syndrome::remote_invalid_request);
  EXPECT_EQ(other_.poll_receive().value().syndrome, rdma::Syndrome::local_length);
}

}  // namespace
}  // namespace offload::rdma::model::test
