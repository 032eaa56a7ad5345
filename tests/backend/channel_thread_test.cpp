#include <gtest/gtest.h>
#include <sys/resource.h>

#include <functional>

#include "backend/backend.hpp"
#include "core/error.hpp"
#include "tests/backend/served_channel.hpp"
#include "tests/support/readable.hpp"

/// Tests of back ends with a thread for each channel: they sleep, are woken and wake their peers.
namespace offload::backend {
namespace {

using namespace std::chrono_literals;
using test::ServedChannel;

struct RingingKind {
  const char* name;
  std::function<std::unique_ptr<Backend>(core::Duration spin)> make;
};

std::ostream& operator<<(std::ostream& out, const RingingKind& kind) {
  return out << kind.name;
}

class RingingBackends : public testing::TestWithParam<RingingKind> {
 protected:
  void SetUp() override {
    try {
      GetParam().make(0us);
    } catch (const core::Error& error) {
      if (error.code() != core::ErrorCode::not_found &&
          error.code() != core::ErrorCode::not_supported) {
        throw;
      }
      GTEST_SKIP() << error.what();
    }
  }

  void start(core::Duration spin) {
    backend_ = GetParam().make(spin);
    backend_->start({channel_.to_backend()}, "reverse");
  }

  /// Returns whether its thread has armed the doorbell: it sleeps, or is about to.
  [[nodiscard]] bool sleeps() {
    return __atomic_load_n(&channel_.memory().response_header().requests.armed, __ATOMIC_RELAXED) !=
           0;
  }

  ServedChannel channel_{0, 4, 2000};
  std::unique_ptr<Backend> backend_;
};

std::chrono::microseconds processor_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

TEST_P(RingingBackends, IdleItUsesNoProcessorTime) {
  start(20us);
  ASSERT_TRUE(channel_.post(support::random_bytes(10, 1)));
  ASSERT_TRUE(channel_.await());
  ASSERT_TRUE(support::eventually([&] { return sleeps(); }));
  const auto before = processor_time();
  std::this_thread::sleep_for(1s);
  EXPECT_LT(processor_time() - before, 20ms);
}

TEST_P(RingingBackends, ARequestWakesIt) {
  start(0us);
  for (std::uint32_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(support::eventually([&] { return sleeps(); }));
    const auto message = support::random_bytes(50, i);
    ASSERT_TRUE(channel_.post(message));
    ASSERT_EQ(channel_.await(), support::reversed(message)) << i;
  }
}

TEST_P(RingingBackends, AnAnswerWakesTheServer) {
  start(0us);
  EXPECT_EQ(backend_->wakeup(), channel::Wakeup::doorbell);
  channel::Requester& requester = channel_.server.requester;
  requester.set_wakeup(channel::Wakeup::doorbell);
  for (std::uint32_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(support::eventually([&] { return sleeps(); }));
    // It is long and has its own slot at once: so there is a reason to wake the thread.
    const auto message = support::random_bytes(channel::BatchBuffer::kLongest + 1, i);
    ASSERT_TRUE(channel_.gather(message));
    requester.slots().arm();
    channel_.flush();
    ASSERT_TRUE(support::is_readable(channel_.channel_memory.endpoint().waiter.fd(), 20'000));
    EXPECT_EQ(channel_.take(), support::reversed(message));
    requester.slots().disarm();
    channel_.channel_memory.endpoint().waiter.drain();
  }
}

// A thread serves at most 64 requests in a turn, or fewer long ones; no other request may follow.
TEST_P(RingingBackends, TheLastAnswerOfATurnWakesTheServer) {
  struct Case {
    std::uint32_t depth;
    std::uint32_t requests;
    std::uint32_t longest;
  };
  for (const auto& [depth, requests, longest] : {Case{128, 63, 2000},
                                                 {128, 64, 2000},
                                                 {128, 65, 2000},
                                                 {128, 128, 2000},
                                                 {4, 2, 128 * 1024},
                                                 {4, 1, 256 * 1024}}) {
    SCOPED_TRACE(testing::Message() << requests << " requests of up to " << longest << " bytes");
    ServedChannel channel(0, depth, longest);
    const auto message = support::random_bytes(channel::BatchBuffer::kLongest + 1, requests);
    for (std::uint32_t i = 0; i < requests; ++i) ASSERT_TRUE(channel.post(message));
    channel::Waiter waiter = channel.channel_memory.endpoint().waiter;
    waiter.arm();
    backend_ = GetParam().make(0us);
    backend_->start({channel.to_backend()}, "reverse");
    constexpr int kMilliseconds = 20'000;
    ASSERT_TRUE(support::is_readable(waiter.fd(), kMilliseconds));
    for (std::uint32_t i = 0; i < requests; ++i) {
      ASSERT_EQ(channel.await(), support::reversed(message)) << i;
    }
    backend_.reset();
  }
}

INSTANTIATE_TEST_SUITE_P(
    , RingingBackends,
    testing::Values(RingingKind{"cpu", [](core::Duration spin) { return make_cpu_backend(spin); }},
                    RingingKind{"graph",
                                [](core::Duration spin) {
                                  return make_graph_backend({"", spin});
                                }}),
    testing::PrintToStringParamName());

}  // namespace
}  // namespace offload::backend
