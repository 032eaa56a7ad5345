#include <list>

#include "tests/rdma/mlx5/card_queue_pair_suite.hpp"
#include "tests/softcard/fixture.hpp"
#include "tests/softcard/loopback_path.hpp"

/// Queues that kernels/rdma posts to, made by the real libmlx5 in memory of the caller.
namespace offload::rdma::mlx5 {
namespace {

/// The software card, which is a process.
class RealCard : public testing::Test {
 protected:
  MemoryKeys share(std::span<std::byte> memory) {
    constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    const auto& made = memory_keys_.emplace_back(
        softcard::test::held((ibv_reg_mr)(domain_.get(), memory.data(), memory.size(), kAccess),
                             ibv_dereg_mr, "a memory"));
    return {made->lkey, made->rkey};
  }
  void connect(CardQueuePair& one, CardQueuePair& other) {
    connect_one(one.queue_pair(), other.queue_pair().qp_num());
    connect_one(other.queue_pair(), one.queue_pair().qp_num());
  }
  void look() {}

  DeviceContext device_{"mlx5_0"};
  ProtectionDomain domain_{device_};

 private:
  void connect_one(QueuePair& from, std::uint32_t to) {
    from.initialize();
    from.ready_to_receive(loopback_path(device_, to));
    from.ready_to_send();
  }

  std::list<softcard::test::Handle<ibv_mr>> memory_keys_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Real, CardQueuePairSuite, testing::Types<RealCard>);

}  // namespace
}  // namespace offload::rdma::mlx5
