#include <infiniband/mlx5dv.h>
#include <sys/mman.h>

#include <chrono>
#include <optional>
#include <vector>

#include "device/device.hpp"
#include "rdma/mlx5/card_queue_pair.hpp"
#include "rdma/verbs/gid.hpp"
#include "tests/softcard/fixture.hpp"

/// Queues that kernels/rdma posts to, made by the real libmlx5 in memory of the caller.
namespace offload::rdma::mlx5 {
namespace {

namespace wire = kernels::rdma;
using softcard::test::kPatience;

/// Pages that the queues of a pair lie in.
class Pages {
 public:
  explicit Pages(std::size_t size)
      : size_(size),
        data_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  Pages& operator=(Pages&&) = delete;
  ~Pages() { ::munmap(data_, size_); }
  [[nodiscard]] std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(data_), size_};
  }

 private:
  std::size_t size_;
  void* data_;
};

class CardQueuePairTest : public testing::Test {
 protected:
  static constexpr QueueSizes kSizes{64, 16};

  static DeviceContext open() { return DeviceContext("mlx5_0"); }
  void connect(QueuePair& from, std::uint32_t to) {
    RtrAttributes rtr;
    const auto gid = choose_gid(device_.gids(), {});
    rtr.ah_attr = default_path();
    rtr.ah_attr.grh.dgid = gid.gid;
    rtr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid.gid_index);
    rtr.dest_qp_num = to;
    from.initialize();
    from.ready_to_receive(rtr);
    from.ready_to_send();
  }
  void SetUp() override {
    connect(one_.queue_pair(), other_.queue_pair().qp_num());
    connect(other_.queue_pair(), one_.queue_pair().qp_num());
  }
  /// Posts writes of a word, one by one, over many laps of the ring.
  void write(const wire::SendQueue& queue) {
    for (std::uint64_t i = 1; i <= 2000; ++i) {
      here_.word(0) = i * 0x9e37'79b9'7f4a'7c15;
      const wire::LocalBuffer buffer{here_.address(), 8, here_.piece(0, 8).lkey};
      wire::SendWork work;
      work.opcode = wire::Opcode::rdma_write;
      work.flags = wire::kSignaled;
      work.remote = {there_.address(), there_.rkey()};
      work.buffers = &buffer;
      work.buffer_count = 1;
      ASSERT_EQ(wire::post_send(queue, posted_, work), wire::Posted::done);
      wire::publish(queue, posted_);
      ASSERT_FALSE(next().is_error()) << i;
      ASSERT_EQ(there_.word(0), here_.word(0)) << i;
    }
  }
  /// Rings for the work that was posted at `one_`, and returns the completion; one that has failed
  /// if there is none in time.
  wire::Completion next() {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    wire::Completion completion{};
    while (!wire::poll_send(one_.host().send, posted_, completion)) {
      one_.relay();
      if (std::chrono::steady_clock::now() > deadline) {
        ADD_FAILURE() << "no completion";
        completion.kind = wire::CqeKind::request_error;
        return completion;
      }
    }
    return completion;
  }

  DeviceContext device_ = open();
  ProtectionDomain domain_{device_};
  Pages memory_of_one_{arena_bytes(kSizes)};
  Pages memory_of_other_{arena_bytes(kSizes)};
  CardQueuePair one_{device_, domain_, kSizes, {memory_of_one_.bytes(), nullptr, {}}};
  CardQueuePair other_{device_, domain_, kSizes, {memory_of_other_.bytes(), nullptr, {}}};
  softcard::test::Memory here_{domain_.get(), 4096};
  softcard::test::Memory there_{domain_.get(), 4096};
  wire::SendState posted_;
};

TEST_F(CardQueuePairTest, AThreadRings) {
  write(one_.host().send);
}

// A GPU rings in this way. A strict card sees it if a doorbell comes before its record.
TEST_F(CardQueuePairTest, TheOwnerRings) {
  wire::SendQueue queue = one_.host().send;
  queue.doorbell = one_.card_register();
  write(queue);
}

TEST_F(CardQueuePairTest, InlineMessagesUseReceives) {
  wire::ReceiveState received;
  const auto& receive = other_.host().receive;
  for (std::uint64_t i = 1; i <= 200; ++i) {
    const wire::LocalBuffer room{there_.address(), 256, there_.piece(0, 8).lkey};
    ASSERT_EQ(wire::post_receive(receive, received, room), wire::Posted::done);
    wire::publish(receive, received);
    here_.fill(i);
    wire::SendWork work;
    work.opcode = wire::Opcode::send_with_imm;
    work.flags = wire::kSignaled;
    work.immediate = static_cast<std::uint32_t>(i);
    work.inline_data = here_.bytes().data();
    work.inline_length = static_cast<std::uint32_t>(i);
    ASSERT_EQ(wire::post_send(one_.host().send, posted_, work), wire::Posted::done);
    wire::publish(one_.host().send, posted_);
    ASSERT_FALSE(next().is_error()) << i;
    wire::Completion came{};
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!wire::poll_receive(receive, received, came)) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << i;
    }
    EXPECT_EQ(came.kind, wire::CqeKind::received_send_with_imm);
    EXPECT_EQ(came.immediate, i);
    EXPECT_EQ(came.byte_count, i);
    ASSERT_EQ(std::memcmp(here_.bytes().data(), there_.bytes().data(), i), 0) << i;
  }
}

}  // namespace
}  // namespace offload::rdma::mlx5
