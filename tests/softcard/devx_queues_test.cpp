#include <fcntl.h>
#include <sys/mman.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/rdma/wait.hpp"
#include "rdma/mlx5/card_queue_pair.hpp"
#include "rdma/mlx5/devx_queue_pair.hpp"
#include "tests/softcard/fixture.hpp"
#include "tests/softcard/loopback_path.hpp"
#include "tests/support/vgem_buffer.hpp"

/// Queues that the card's own commands make, by the real libmlx5: in any memory, without a record,
/// with shared receives, and with entries that wait.
namespace offload::rdma::mlx5 {
namespace {

namespace wire = kernels::rdma;
using softcard::test::kPatience;

constexpr QueueSizes kSizes{64, 16};

/// Memory for queues: of the host, or a dma-buf, as a GPU's memory is.
class Space {
 public:
  explicit Space(const std::vector<std::byte>& content) : size_(content.size()) {
    base_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    std::memcpy(base_, content.data(), size_);
    space_ = {base_, size_};
  }
  /// At `offset` of the dma-buf.
  Space(const std::vector<std::byte>& content, const support::VgemBuffer& buffer,
        std::size_t offset)
      : base_(buffer.owners() + offset) {
    std::memcpy(base_, content.data(), content.size());
    space_ = {nullptr, content.size(), buffer.fd(), offset};
  }
  Space& operator=(Space&&) = delete;
  ~Space() {
    if (size_ != 0) ::munmap(base_, size_);
  }
  [[nodiscard]] const QueueSpace& get() const { return space_; }
  [[nodiscard]] void* base() const { return base_; }

 private:
  std::size_t size_ = 0;
  void* base_;
  QueueSpace space_;
};

/// A queue pair whose owner is the test.
struct End {
  End(const DeviceContext& device, const ProtectionDomain& domain, const Space& space,
      const DevxQueuePair::Options& options = {})
      : pair(device, domain, kSizes, space.get(), options),
        queues(pair.seen_at(space.base(), pair.card_register())) {}

  wire::Posted post(wire::SendWork work, bool signaled = true) {
    if (signaled) work.flags = wire::kSignaled;
    return wire::post_send(queues.send, posted, work);
  }
  void publish() {
    wire::ring_up_to(queues.send, posted.posted, posted.polled);
    posted.published = posted.posted;
  }
  std::optional<wire::Completion> poll() {
    wire::Completion completion{};
    if (!wire::poll_send(queues.send, posted, completion)) return std::nullopt;
    return completion;
  }
  /// Returns the next completion; one that has failed if there is none in time.
  wire::Completion next() {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      if (const auto completion = poll()) return *completion;
    }
    ADD_FAILURE() << "no completion";
    wire::Completion none{};
    none.kind = wire::CqeKind::request_error;
    return none;
  }

  DevxQueuePair pair;
  QueuePairMemory queues;
  wire::SendState posted;
};

/// Returns the completion of the oldest receive; one that has failed if there is none in time.
wire::Completion next_received(const wire::ReceiveQueue& queue, wire::ReceiveState& state) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  wire::Completion completion{};
  while (!wire::poll_receive(queue, state, completion)) {
    if (std::chrono::steady_clock::now() < deadline) continue;
    ADD_FAILURE() << "nothing has come";
    completion.kind = wire::CqeKind::request_error;
    break;
  }
  return completion;
}

class DevxTest : public testing::Test {
 protected:
  void connect(DevxQueuePair& from, std::uint32_t to) { from.connect(loopback_path(device_, to)); }
  void connect(End& one, End& other) {
    connect(one.pair, other.pair.number());
    connect(other.pair, one.pair.number());
  }
  [[nodiscard]] wire::LocalBuffer local(softcard::test::Memory& memory, std::size_t offset,
                                        std::uint32_t length) const {
    return {memory.address(offset), length, memory.piece(0, 8).lkey};
  }
  wire::SendWork write_work(const wire::LocalBuffer& from, std::size_t offset = 0) const {
    wire::SendWork work;
    work.opcode = wire::Opcode::rdma_write;
    work.remote = {there_.address(offset), there_.rkey()};
    work.buffers = &from;
    work.buffer_count = 1;
    return work;
  }
  /// Writes words one by one, over many laps of the ring.
  void write_many(End& end) {
    const auto from = local(here_, 0, 8);
    for (std::uint64_t i = 1; i <= 500; ++i) {
      here_.word(0) = i * 0x9e37'79b9'7f4a'7c15;
      ASSERT_EQ(end.post(write_work(from)), wire::Posted::done);
      end.publish();
      ASSERT_FALSE(end.next().is_error()) << i;
      ASSERT_EQ(there_.word(0), here_.word(0)) << i;
    }
  }

  DeviceContext device_{"mlx5_0"};
  ProtectionDomain domain_{device_};
  softcard::test::Memory here_{domain_.get(), 4096};
  softcard::test::Memory there_{domain_.get(), 4096};
};

TEST_F(DevxTest, TheCardTellsItsAbilities) {
  const CardAbilities abilities = query_abilities(device_);
  EXPECT_TRUE(abilities.waits_for_completions);
  EXPECT_TRUE(abilities.waits_for_times);
  EXPECT_TRUE(abilities.rings_without_record);
}

TEST_F(DevxTest, WritesAndMessages) {
  const Space spaces[2] = {Space(DevxQueuePair::first_content(kSizes)),
                           Space(DevxQueuePair::first_content(kSizes))};
  End one(device_, domain_, spaces[0]);
  End other(device_, domain_, spaces[1]);
  connect(one, other);
  write_many(one);
  write_many(other);
  wire::ReceiveState received;
  for (std::uint32_t i = 1; i <= 100; ++i) {
    here_.fill(i);
    ASSERT_EQ(wire::post_receive(other.queues.receive, received, local(there_, 0, 256)),
              wire::Posted::done);
    wire::publish(other.queues.receive, received);
    wire::SendWork work;
    work.opcode = wire::Opcode::send_with_imm;
    work.immediate = i;
    work.inline_data = here_.bytes().data();
    work.inline_length = i;
    ASSERT_EQ(one.post(work), wire::Posted::done);
    one.publish();
    ASSERT_FALSE(one.next().is_error()) << i;
    const auto came = next_received(other.queues.receive, received);
    EXPECT_EQ(came.immediate, i);
    EXPECT_EQ(came.byte_count, i);
    ASSERT_EQ(std::memcmp(here_.bytes().data(), there_.bytes().data(), i), 0) << i;
  }
}

TEST_F(DevxTest, QueuesInADmaBuf) {
  const core::Fd driver(::open(support::VgemBuffer::kPath, O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(driver.valid()) << "/dev/dri/card0: " << std::strerror(errno);
  const support::VgemBuffer buffer(driver);
  ASSERT_TRUE(buffer.is_made()) << std::strerror(errno);
  const auto content = DevxQueuePair::first_content(kSizes);
  ASSERT_LE(2 * content.size() + kRingAlignment, support::VgemBuffer::kBytes);
  const Space spaces[2] = {Space(content, buffer, kRingAlignment),
                           Space(content, buffer, kRingAlignment + content.size())};
  End one(device_, domain_, spaces[0]);
  End other(device_, domain_, spaces[1]);
  connect(one, other);
  write_many(one);
  write_many(other);
}

// Several entries and laps: the record stays what it was, and the doorbell alone counts.
TEST_F(DevxTest, ADoorbellWithoutARecord) {
  const Space spaces[2] = {Space(DevxQueuePair::first_content(kSizes)),
                           Space(DevxQueuePair::first_content(kSizes))};
  End one(device_, domain_, spaces[0], {.has_record = false});
  End other(device_, domain_, spaces[1]);
  connect(one, other);
  write_many(one);
  const auto from = local(here_, 0, 8);
  for (std::uint64_t i = 0; i < 100; ++i) {
    here_.word(0) = i;
    for (int entry = 0; entry < 3; ++entry) {
      ASSERT_EQ(one.post(write_work(from, 8 * i % 64), entry == 2), wire::Posted::done);
    }
    one.publish();
    ASSERT_FALSE(one.next().is_error()) << i;
    ASSERT_EQ(there_.word(i % 8), i);
  }
  EXPECT_EQ(*one.queues.send.record, 0U);
  // A register of the other kind rings neither of them.
  constexpr std::ptrdiff_t kWords = (0x800 - 0x600) / 8;
  for (End* const end : {&one, &other}) {
    std::uint64_t* const own = end->queues.send.doorbell;
    end->queues.send.doorbell += end == &one ? kWords : -kWords;
    ASSERT_EQ(end->post(write_work(from)), wire::Posted::done);
    end->publish();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(end->poll());
    end->queues.send.doorbell = own;
    end->publish();
    EXPECT_FALSE(end->next().is_error());
  }
}

// The queue copies from one memory to another one, as a DMA engine would.
TEST_F(DevxTest, AQueueThatIsConnectedToItselfCopies) {
  const Space space(DevxQueuePair::first_content(kSizes));
  End one(device_, domain_, space);
  connect(one.pair, one.pair.number());
  for (std::uint32_t length = 1; length <= 4096; length = 3 * length + 1) {
    here_.fill(length);
    there_.fill(0);
    const auto from = local(here_, 0, length);
    ASSERT_EQ(one.post(write_work(from)), wire::Posted::done);
    one.publish();
    ASSERT_FALSE(one.next().is_error()) << length;
    EXPECT_EQ(std::memcmp(here_.bytes().data(), there_.bytes().data(), length), 0) << length;
  }
}

// The owner never says that it has polled.
TEST_F(DevxTest, AQueueThatIsNotCheckedForOverruns) {
  const Space spaces[2] = {Space(DevxQueuePair::first_content(kSizes)),
                           Space(DevxQueuePair::first_content(kSizes))};
  for (const bool checks : {false, true}) {
    End one(device_, domain_, spaces[checks ? 1 : 0], {.checks_overrun = checks});
    connect(one.pair, one.pair.number());
    const auto from = local(here_, 0, 8);
    wire::Completion completion{};
    std::uint64_t polled = 0;
    for (; polled < 3 * kSizes.send_blocks; ++polled) {
      ASSERT_EQ(one.post(write_work(from)), wire::Posted::done);
      wire::publish(one.queues.send, one.posted);
      const auto deadline =
          std::chrono::steady_clock::now() + (checks ? std::chrono::seconds(1) : kPatience);
      bool came = false;
      while (!came && std::chrono::steady_clock::now() < deadline) {
        came = wire::poll_completion(one.queues.send.completions, polled, completion);
      }
      if (!came) break;
      ASSERT_FALSE(completion.is_error());
      one.posted.completed = one.posted.posted;
    }
    EXPECT_EQ(polled, checks ? kSizes.send_blocks : 3 * kSizes.send_blocks);
  }
}

// Two queue pairs take receives from one ring, in their order.
TEST_F(DevxTest, QueuePairsShareReceivesInARing) {
  constexpr std::uint32_t kEntries = 8;
  const Space ring(DevxReceives::first_content(kEntries));
  const DevxReceives shared(device_, domain_, kEntries, ring.get());
  const auto receive = shared.seen_at(ring.base());
  std::vector<std::unique_ptr<Space>> spaces;
  std::vector<std::unique_ptr<End>> ends;
  for (int i = 0; i < 4; ++i) {
    spaces.push_back(std::make_unique<Space>(DevxQueuePair::first_content(kSizes)));
    const DevxQueuePair::Options options{.shared = i < 2 ? &shared : nullptr};
    ends.push_back(std::make_unique<End>(device_, domain_, *spaces.back(), options));
  }
  connect(*ends[0], *ends[2]);
  connect(*ends[1], *ends[3]);
  wire::ReceiveState received;
  for (std::uint64_t i = 0; i < 100; ++i) {
    while (
        wire::post_receive(receive, received, local(there_, received.posted % kEntries * 8, 8)) ==
        wire::Posted::done) {
    }
    wire::publish(receive, received);
    here_.word(0) = i + 1;
    End& from = *ends[2 + (i / 3) % 2];
    wire::SendWork work;
    const auto buffer = local(here_, 0, 8);
    work.opcode = wire::Opcode::send;
    work.buffers = &buffer;
    work.buffer_count = 1;
    ASSERT_EQ(from.post(work), wire::Posted::done);
    from.publish();
    ASSERT_FALSE(from.next().is_error()) << i;
    const auto came = next_received(receive, received);
    EXPECT_EQ(came.queue, ends[(i / 3) % 2]->pair.number());
    EXPECT_EQ(came.counter, i);
    ASSERT_EQ(there_.word(i % kEntries), i + 1);
  }
  // Both also send by themselves.
  write_many(*ends[0]);
}

// One queue passes on the message that another one receives. It was posted before the message came.
TEST_F(DevxTest, AQueueWaitsForACompletionOfAnother) {
  std::vector<std::unique_ptr<Space>> spaces;
  std::vector<std::unique_ptr<End>> ends;
  for (int i = 0; i < 4; ++i) {
    spaces.push_back(std::make_unique<Space>(DevxQueuePair::first_content(kSizes)));
    ends.push_back(std::make_unique<End>(device_, domain_, *spaces.back()));
  }
  End& first = *ends[0];
  End& between = *ends[1];
  End& last = *ends[2];
  ASSERT_TRUE(last.pair.waits_for_completions());
  connect(first, between);
  connect(last, *ends[3]);
  wire::ReceiveState received;
  const auto from = local(here_, 0, 8);
  const auto passed = local(there_, 0, 8);
  for (std::uint64_t i = 0; i < 100; ++i) {
    there_.word(1) = 0;
    ASSERT_EQ(wire::post_receive(between.queues.receive, received, passed), wire::Posted::done);
    wire::publish(between.queues.receive, received);
    ASSERT_EQ(last.post(wire::wait_for_completion(between.queues.receive.completions, i), false),
              wire::Posted::done);
    ASSERT_EQ(last.post(write_work(passed, 8)), wire::Posted::done);
    last.publish();
    if (i < 5) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_FALSE(last.poll()) << i;
    ASSERT_EQ(there_.word(1), 0U);
    here_.word(0) = i + 1;
    wire::SendWork work;
    work.opcode = wire::Opcode::send;
    work.buffers = &from;
    work.buffer_count = 1;
    ASSERT_EQ(first.post(work), wire::Posted::done);
    first.publish();
    ASSERT_FALSE(first.next().is_error());
    ASSERT_FALSE(last.next().is_error()) << i;
    EXPECT_EQ(there_.word(1), i + 1);
    EXPECT_FALSE(next_received(between.queues.receive, received).is_error());
  }
}

TEST_F(DevxTest, AQueueWaitsForATime) {
  constexpr std::uint64_t kMilliseconds = 1'000'000;
  const Space spaces[2] = {Space(DevxQueuePair::first_content(kSizes)),
                           Space(DevxQueuePair::first_content(kSizes))};
  End one(device_, domain_, spaces[0]);
  End other(device_, domain_, spaces[1]);
  connect(one, other);
  const auto from = local(here_, 0, 8);
  for (std::uint64_t i = 1; i <= 10; ++i) {
    here_.word(0) = i;
    const std::uint64_t time = wire::now_ns() + i * kMilliseconds;
    ASSERT_EQ(one.post(wire::wait_for_time(time), false), wire::Posted::done);
    ASSERT_EQ(one.post(write_work(from)), wire::Posted::done);
    one.publish();
    ASSERT_FALSE(one.next().is_error());
    EXPECT_GE(wire::now_ns(), time);
    EXPECT_EQ(there_.word(0), i);
  }
}

// Verbs cannot make a queue pair that may wait for others' completions.
TEST_F(DevxTest, AQueueOfVerbsDoesNotWaitForCompletions) {
  std::vector<std::byte> room(arena_bytes(kSizes) + 2 * kRingAlignment);
  void* begin = room.data();
  std::size_t left = room.size();
  std::align(kRingAlignment, arena_bytes(kSizes), begin, left);
  const SeenMemory memory{{static_cast<std::byte*>(begin), arena_bytes(kSizes)}, nullptr, {}};
  CardQueuePair pair(device_, domain_, kSizes, memory);
  pair.queue_pair().initialize();
  pair.queue_pair().ready_to_receive(loopback_path(device_, pair.queue_pair().qp_num()));
  pair.queue_pair().ready_to_send();
  auto queue = pair.host().send;
  queue.doorbell = pair.card_register();
  wire::SendState posted;
  auto work = wire::wait_for_completion(pair.host().receive.completions, 0);
  work.flags = wire::kSignaled;
  ASSERT_EQ(wire::post_send(queue, posted, work), wire::Posted::done);
  wire::publish(queue, posted);
  wire::Completion completion{};
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!wire::poll_send(queue, posted, completion)) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  }
  EXPECT_EQ(completion.syndrome, wire::Syndrome::local_queue_operation);
}

TEST_F(DevxTest, AFailedPairIsUsedAgain) {
  const Space spaces[2] = {Space(DevxQueuePair::first_content(kSizes)),
                           Space(DevxQueuePair::first_content(kSizes))};
  End one(device_, domain_, spaces[0]);
  End other(device_, domain_, spaces[1]);
  connect(one, other);
  one.pair.fail();
  const auto from = local(here_, 0, 8);
  ASSERT_EQ(one.post(write_work(from)), wire::Posted::done);
  one.publish();
  EXPECT_EQ(one.next().syndrome, wire::Syndrome::flushed);
  EXPECT_THROW(connect(one.pair, other.pair.number()), core::Error);
  for (End* const end : {&one, &other}) {
    end->pair.reset();
    *end->queues.send.record = 0;
    *end->queues.receive.record = 0;
  }
  // The completion queue goes on; the ring begins again.
  one.posted = {.polled = one.posted.polled};
  connect(one, other);
  write_many(one);
}

TEST_F(DevxTest, WhatTheCardRefuses) {
  const auto content = DevxQueuePair::first_content(kSizes);
  const Space space(content);
  QueueSpace small = space.get();
  small.size -= 1;
  EXPECT_THROW(DevxQueuePair(device_, domain_, kSizes, small), core::Error);
  DevxCommand command;  // without memory
  EXPECT_THROW(CardObject(device_, command, DevxOpcode::create_qp, "a queue pair"), core::Error);
  EXPECT_THROW(CardObject(device_, command, DevxOpcode::create_cq, "a queue"), core::Error);
  EXPECT_THROW(CardObject(device_, command, DevxOpcode::create_rmp, "receives"), core::Error);
  EXPECT_THROW(CardObject(device_, command, DevxOpcode::query_abilities, "an object"), core::Error);
  // A ring beyond the memory, one that begins within a page, and a record beyond it.
  const CardSpace known(device_, space.get());
  const CardRegisters registers(device_);
  const RingPlace good{0, kRingAlignment};
  EXPECT_NO_THROW(make_card_completions(device_, known, registers, good, 4));
  for (const RingPlace place : {RingPlace{content.size() & ~(kRingAlignment - 1), 0},
                                RingPlace{64, 0}, RingPlace{0, 4}, RingPlace{0, content.size()}}) {
    EXPECT_THROW(make_card_completions(device_, known, registers, place, 4), core::Error)
        << place.entries << ' ' << place.record;
  }
}

// Verbs and commands take numbers from one count, so that each is used again as late as possible.
TEST_F(DevxTest, ANumberIsNotUsedAgainAtOnce) {
  const auto made_by_verbs = [&] { return softcard::test::Pair(domain_.get(), {}).number(); };
  const std::uint32_t first = made_by_verbs();
  const Space space(DevxQueuePair::first_content(kSizes));
  const std::uint32_t second = End(device_, domain_, space).pair.number();
  EXPECT_LT(first, second);
  EXPECT_LT(second, made_by_verbs());
}

// libmlx5 ends objects in any order; memory in use stays.
TEST_F(DevxTest, MemoryInUseIsNotGivenBack) {
  const Space space(DevxQueuePair::first_content(kSizes));
  mlx5dv_devx_umem_in in{};
  in.addr = space.base();
  in.size = space.get().size;
  in.access = IBV_ACCESS_LOCAL_WRITE;
  in.pgsz_bitmap = ~(std::uint64_t{kRingAlignment} - 1);
  mlx5dv_devx_umem* const known = mlx5dv_devx_umem_reg_ex(device_.get(), &in);
  ASSERT_NE(known, nullptr);
  {
    const CardRegisters registers(device_);
    DevxCommand command;
    command.set(kCqContext + DevxField{0x6, 1}, 1);
    command.set(kCqContext + DevxField{0x20, 32}, known->umem_id);
    command.set(kCqContext + DevxField{0x1c0, 64}, kRingAlignment);
    command.set(kCqContext + DevxField{0x63, 5}, 4);
    command.set(kCqContext + DevxField{0x68, 24}, registers.number());
    command.set(kCqContext + DevxField{0xb8, 8}, 1);
    command.set(DevxField{0x2c0, 32}, known->umem_id);
    command.set(DevxField{0x2e0, 1}, 1);
    const CardObject queue(device_, command, DevxOpcode::create_cq, "a completion queue");
    EXPECT_EQ(errno_of(mlx5dv_devx_umem_dereg(known)), EBUSY);
  }
  EXPECT_EQ(mlx5dv_devx_umem_dereg(known), 0);
}

}  // namespace
}  // namespace offload::rdma::mlx5
