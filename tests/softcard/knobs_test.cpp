#include <fcntl.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

#include "rdma/verbs/device_context.hpp"
#include "tests/softcard/fixture.hpp"

/// The faults that the card can have. Each suite needs a card with an option of its name, or the
/// number of its process.
namespace offload::softcard::test {
namespace {

/// Writes once by a queue pair that is connected to itself.
void expect_write(const Handle<ibv_context>& device) {
  const auto domain = held(ibv_alloc_pd(device.get()), ibv_dealloc_pd, "a domain");
  Memory memory(domain.get(), 64);
  Pair pair(domain.get(), {});
  pair.connect(pair.number());
  memory.fill(3);
  ibv_sge piece = memory.piece(0, 8);
  ASSERT_EQ(pair.post(remote_work(IBV_WR_RDMA_WRITE, memory, 8), {&piece, 1}), 0);
  EXPECT_EQ(pair.next_sent().status, IBV_WC_SUCCESS);
  EXPECT_EQ(memory.word(1), memory.word(0));
}

/// Returns how often the card's process has slept.
std::uint64_t sleeps_of(const char* card) {
  std::ifstream status("/proc/" + std::string(card) + "/status");
  std::string word;
  std::uint64_t sleeps = 0;
  while (status >> word && word != "voluntary_ctxt_switches:") {
  }
  EXPECT_TRUE(status >> sleeps);
  return sleeps;
}

// A register with write combining is refused, and with it a thread domain; queue pairs share the
// one without.
TEST(NoWriteCombining, QueuePairsWorkAndThreadDomainsAreRefused) {
  const auto device = open_device();
  ibv_td_init_attr none{};
  EXPECT_EQ(ibv_alloc_td(device.get(), &none), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  expect_write(device);
}

TEST(NoRegisters, ACompletionQueueCannotBeMade) {
  const auto device = open_device();
  mlx5dv_devx_uar* const page = mlx5dv_devx_alloc_uar(device.get(), MLX5DV_UAR_ALLOC_TYPE_NC);
  EXPECT_EQ(page, nullptr);
  ibv_td_init_attr none{};
  EXPECT_EQ(ibv_alloc_td(device.get(), &none), nullptr);
  // The library names no register to the module. Without this queue there is no queue pair either.
  EXPECT_EQ(ibv_create_cq(device.get(), 16, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

// The first call waits as long as the module does. Later calls fail at once, and destroying objects
// does not wait.
TEST(NoAnswer, LaterCallsFailAtOnce) {
  const char* const card = std::getenv("SOFTCARD_PID");
  ASSERT_NE(card, nullptr);
  auto begin = std::chrono::steady_clock::now();
  {
    const auto device = open_device();
    const auto domain = held(ibv_alloc_pd(device.get()), ibv_dealloc_pd, "a domain");
    Memory memory(domain.get(), 4096);
    Pair pair(domain.get(), {});
    pair.connect(pair.number());
    ASSERT_EQ(::kill(std::atoi(card), SIGSTOP), 0);
    EXPECT_EQ(ibv_create_cq(device.get(), 16, nullptr, nullptr, 0), nullptr);
    EXPECT_EQ(errno, ETIMEDOUT);
    begin = std::chrono::steady_clock::now();
    EXPECT_EQ(ibv_create_cq(device.get(), 16, nullptr, nullptr, 0), nullptr);
    EXPECT_EQ(errno, ENODEV);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(Reset, TheDeviceFailsAndWorksAgainWhenAllIsGone) {
  const char* const card = std::getenv("SOFTCARD_PID");
  ASSERT_NE(card, nullptr);
  {
    const auto device = open_device();
    ASSERT_EQ(fcntl(device->async_fd, F_SETFL, O_NONBLOCK), 0);
    const auto domain = held(ibv_alloc_pd(device.get()), ibv_dealloc_pd, "a domain");
    Memory memory(domain.get(), 64);
    Pair pair(domain.get(), {});
    pair.connect(pair.number());
    ASSERT_EQ(::kill(std::atoi(card), SIGUSR1), 0);
    ibv_async_event event{};
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (ibv_get_async_event(device.get(), &event) != 0) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(event.event_type, IBV_EVENT_DEVICE_FATAL);
    ibv_ack_async_event(&event);
    ibv_sge piece = memory.piece(0, 8);
    ASSERT_EQ(pair.post(remote_work(IBV_WR_RDMA_WRITE, memory, 8), {&piece, 1}), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ibv_wc completion{};
    EXPECT_EQ(ibv_poll_cq(pair.sent(), 1, &completion), 0);
    EXPECT_EQ(ibv_create_cq(device.get(), 16, nullptr, nullptr, 0), nullptr);
    EXPECT_EQ(errno, EIO);
  }
  expect_write(open_device());
}

// No object exists whose end would let it work again. An idle card sleeps in each turn, so it has
// taken the signal when it has slept three times.
TEST(Reset, TheDeviceWithoutObjectsWorksAgainAtOnce) {
  const char* const card = std::getenv("SOFTCARD_PID");
  ASSERT_NE(card, nullptr);
  ASSERT_EQ(::kill(std::atoi(card), SIGUSR1), 0);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (const auto before = sleeps_of(card); sleeps_of(card) < before + 3;) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_NO_THROW(rdma::DeviceContext("mlx5_0"));
  expect_write(open_device());
}

}  // namespace
}  // namespace offload::softcard::test
