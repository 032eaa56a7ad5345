#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <system_error>
#include <thread>

#include "tests/doca/doca_gpu_fixture.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/eventually.hpp"

namespace offload::doca {
namespace {

/// Returns the most bytes that have arrived at a socket of this process and were not read.
int most_unread() {
  int most = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;  // another thread may close it
    int count = 0;
    if (std::filesystem::is_socket(entry.path(), error) &&
        ::ioctl(std::stoi(entry.path().filename()), FIONREAD, &count) == 0) {
      most = std::max(most, count);
    }
  }
  return most;
}

/// The stop of a kernel's producer while its message, which fills the system's buffers, is sent.
class DocaGpuStopTest : public DocaGpuTest {
 protected:
  using Clock = std::chrono::steady_clock;

  /// Begins a message to the server's consumer, then stops the producer.
  void stop_while_sending() {
    start_all();
    std::fill(from_.bytes.begin(), from_.bytes.end(), 'x');
    ASSERT_EQ(post(to_.empty(0, kMemory)), DOCA_SUCCESS);
    const auto address = reinterpret_cast<std::uintptr_t>(from_.bytes.data());
    ASSERT_EQ(doca_dev_gpu_comch_producer_send(own_producer_, key_of(from_.mmap), address, kMemory,
                                               nullptr, 0, id_, 1),
              DOCA_SUCCESS);
    ASSERT_TRUE(support::eventually([] { return most_unread() > 16384; }));  // it has begun
    begin_ = Clock::now();
    EXPECT_EQ(doca_ctx_stop(kernel_producer_end_.ctx), DOCA_ERROR_IN_PROGRESS);
    EXPECT_LT(Clock::now() - begin_, std::chrono::milliseconds(400)) << "the stop waits";
    std::uint64_t id = 0;
    EXPECT_EQ(doca_dev_gpu_comch_producer_poll(own_producer_, &id, DOCA_GPU_COMCH_WAIT_FLAG_NB),
              DOCA_ERROR_BAD_STATE);
  }
  [[nodiscard]] bool is_idle() const { return kernel_producer_end_.state() == DOCA_CTX_STATE_IDLE; }

  Clock::time_point begin_;  ///< of the stop
};

TEST_F(DocaGpuStopTest, AMessageThatHasBegunIsSent) {
  stop_while_sending();
  ASSERT_TRUE(run_until([&] { return is_idle() && receiver_.texts.size() == 1; }));
  EXPECT_EQ(receiver_.results[0], DOCA_SUCCESS);
  EXPECT_TRUE(receiver_.texts[0] == std::string(kMemory, 'x'));
}

TEST_F(DocaGpuStopTest, AConsumerThatTakesNoBytesLosesItsStream) {
  stop_while_sending();
  while (!is_idle() && Clock::now() < begin_ + std::chrono::seconds(20)) {
    kernel_producer_end_.turn();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(is_idle());
  EXPECT_GE(Clock::now() - begin_, std::chrono::milliseconds(450));
  ASSERT_TRUE(run_until([&] { return receiver_.state() == DOCA_CTX_STATE_IDLE; }));
  EXPECT_NE(receiver_.results[0], DOCA_SUCCESS);
}

TEST_F(DocaGpuStopTest, AConsumerThatIsTooSlowLosesItsStream) {
  stop_while_sending();
  while (!is_idle() && Clock::now() < begin_ + std::chrono::seconds(20)) {
    receiver_.turn();
    kernel_producer_end_.turn();
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
  }
  EXPECT_TRUE(is_idle());
  EXPECT_GE(Clock::now() - begin_, std::chrono::seconds(3));
  EXPECT_LT(Clock::now() - begin_, std::chrono::seconds(8));
  ASSERT_TRUE(run_until([&] { return receiver_.state() == DOCA_CTX_STATE_IDLE; }));
  EXPECT_NE(receiver_.results[0], DOCA_SUCCESS);
}

TEST_F(DocaGpuTest, AnIdleProducerLearnsThatItsPeerIsGone) {
  start_all();
  EXPECT_EQ(doca_comch_server_disconnect(server_, server_side_.connection), DOCA_SUCCESS);
  EXPECT_TRUE(run_until([&] { return kernel_producer_end_.state() == DOCA_CTX_STATE_IDLE; },
                        std::chrono::seconds(5)));
  std::uint64_t id = 0;
  EXPECT_EQ(doca_dev_gpu_comch_producer_poll(own_producer_, &id, DOCA_GPU_COMCH_WAIT_FLAG_NB),
            DOCA_ERROR_IO_FAILED);
}

TEST_F(DocaGpuTest, AConsumerNeedsAStartedMmap) {
  connect();
  kernel_consumer_ = make_kernel_consumer();
  ASSERT_EQ(doca_mmap_stop(memory_.mmap), DOCA_SUCCESS);
  EXPECT_EQ(doca_ctx_start(kernel_consumer_end_.ctx), DOCA_ERROR_BAD_STATE);
  ASSERT_EQ(doca_mmap_start(memory_.mmap), DOCA_SUCCESS);
  EXPECT_EQ(doca_ctx_start(kernel_consumer_end_.ctx), DOCA_ERROR_IN_PROGRESS);
}

TEST_F(DocaGpuTest, AFailedStartEndsTheWaitsOfAKernel) {
  connect();
  kernel_consumer_ = make_kernel_consumer();
  kernel_producer_ = make_kernel_producer();
  EXPECT_EQ(doca_comch_server_disconnect(server_, server_side_.connection), DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] { return client_side_.state() == DOCA_CTX_STATE_IDLE; }));
  EXPECT_EQ(doca_ctx_start(kernel_consumer_end_.ctx), DOCA_ERROR_NOT_CONNECTED);
  EXPECT_EQ(doca_ctx_start(kernel_producer_end_.ctx), DOCA_ERROR_NOT_CONNECTED);
  ASSERT_EQ(doca_comch_consumer_get_gpu_handle(kernel_consumer_, &own_consumer_), DOCA_SUCCESS);
  ASSERT_EQ(doca_comch_producer_get_gpu_handle(kernel_producer_, &own_producer_), DOCA_SUCCESS);
  std::uint32_t mkey = 0;
  std::uint32_t length = 0;
  std::uintptr_t address = 0;
  std::uint64_t id = 0;
  EXPECT_EQ(doca_dev_gpu_comch_consumer_recv_wait(own_consumer_, &mkey, &address, &length, nullptr,
                                                  nullptr, DOCA_GPU_COMCH_WAIT_FLAG_NB),
            DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_dev_gpu_comch_producer_poll(own_producer_, &id, DOCA_GPU_COMCH_WAIT_FLAG_NB),
            DOCA_ERROR_BAD_STATE);
}

/// The process's threads.
std::set<std::string> threads() {
  std::set<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    all.insert(entry.path().filename());
  }
  return all;
}

TEST_F(DocaGpuTest, ItsThreadTakesNoSignals) {
  const std::set<std::string> former = threads();
  start_all();
  std::size_t added = 0;
  for (const std::string& thread : threads()) {
    if (former.contains(thread)) continue;
    ++added;
    std::ifstream status("/proc/self/task/" + thread + "/status");
    std::string line;
    while (std::getline(status, line) && !line.starts_with("SigBlk:")) {
    }
    const std::uint64_t blocked = std::stoull(line.substr(7), nullptr, 16);
    for (const int number : {SIGINT, SIGTERM, SIGALRM, SIGUSR1}) {
      EXPECT_NE(blocked & (std::uint64_t{1} << (number - 1)), 0) << number;
    }
  }
  EXPECT_EQ(added, 1);
}

TEST(DocaGpu, ASizeAndItsAlignmentDoNotOverflow) {
  const HostGpu gpu;
  void* own = nullptr;
  EXPECT_EQ(
      doca_gpu_mem_alloc(gpu.gpu, SIZE_MAX - 4000, 4096, DOCA_GPU_MEM_TYPE_GPU, &own, nullptr),
      DOCA_ERROR_NO_MEMORY);
  EXPECT_EQ(own, nullptr);
}

TEST_F(ComchTest, GpusComeAndGoWhileAnMmapAsksThem) {
  Memory memory(host_, 4096);
  ::setenv("OFFLOAD_DOCA_GPUS", kGpu, 1);
  std::atomic<bool> is_over{false};
  std::jthread other([&] {
    for (int i = 0; i < 2000; ++i) {
      std::array<doca_gpu*, 16> gpus{};
      for (doca_gpu*& gpu : gpus) EXPECT_EQ(doca_gpu_create(kGpu, &gpu), DOCA_SUCCESS);
      for (doca_gpu* const gpu : gpus) EXPECT_EQ(doca_gpu_destroy(gpu), DOCA_SUCCESS);
    }
    is_over = true;
  });
  while (!is_over) {
    ASSERT_EQ(doca_mmap_stop(memory.mmap), DOCA_SUCCESS);
    ASSERT_EQ(doca_mmap_start(memory.mmap), DOCA_SUCCESS);
  }
  other.join();
  ::unsetenv("OFFLOAD_DOCA_GPUS");
}

/// The end of a peer, as a kernel in another process sees it.
class DocaGpuPeerEndTest : public DocaGpuTest {
 protected:
  /// Posts three buffers, and receives two messages behind which the stream ends. Returns the exit
  /// status.
  int run_kernel_process() {
    Side own;
    doca_comch_client* const client = make_client(own, kName);
    if (doca_ctx_start(own.ctx) != DOCA_ERROR_IN_PROGRESS) return 1;
    if (!turn_until(own, [&] { return own.state() == DOCA_CTX_STATE_RUNNING; })) return 2;
    EXPECT_EQ(doca_comch_client_get_connection(client, &client_side_.connection), DOCA_SUCCESS);
    kernel_consumer_ = make_kernel_consumer();
    EXPECT_EQ(doca_ctx_start(kernel_consumer_end_.ctx), DOCA_ERROR_IN_PROGRESS);
    if (!turn_until(own, [&] { return kernel_consumer_end_.state() == DOCA_CTX_STATE_RUNNING; })) {
      return 3;
    }
    EXPECT_EQ(doca_comch_consumer_get_gpu_handle(kernel_consumer_, &own_consumer_), DOCA_SUCCESS);
    make_array();
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(
          doca_dev_gpu_comch_consumer_post_recv(own_consumer_, mkey_, address_ + i * kSize, kSize),
          DOCA_SUCCESS);
    }
    for (const char* const expected : {"first", "second"}) {
      std::uint32_t mkey = 0;
      std::uint32_t length = 0;
      std::uintptr_t address = 0;
      if (doca_dev_gpu_comch_consumer_recv_wait(own_consumer_, &mkey, &address, &length, nullptr,
                                                nullptr,
                                                DOCA_GPU_COMCH_WAIT_FLAG_B) != DOCA_SUCCESS) {
        return 6;
      }
      EXPECT_EQ(std::string(bytes_at(address), length), expected);
    }
    std::uint32_t mkey = 0;
    std::uint32_t length = 0;
    std::uintptr_t address = 0;
    if (doca_dev_gpu_comch_consumer_recv_wait(own_consumer_, &mkey, &address, &length, nullptr,
                                              nullptr,
                                              DOCA_GPU_COMCH_WAIT_FLAG_B) != DOCA_ERROR_IO_FAILED) {
      return 7;
    }
    ::_exit(testing::Test::HasFailure() ? 8 : 0);
  }
};

TEST_F(DocaGpuPeerEndTest, AKernelReceivesWhatArrivedBeforeTheEnd) {
  ASSERT_EQ(doca_ctx_start(server_side_.ctx), DOCA_SUCCESS);
  support::ChildProcess child([&](int) { return run_kernel_process(); }, std::chrono::seconds(60));
  ASSERT_TRUE(run_until([&] { return server_side_.new_consumers.size() == 1; }));
  id_ = server_side_.new_consumers[0];
  producer_ = make_producer(sender_, server_side_.connection);
  ASSERT_EQ(doca_ctx_start(sender_.ctx), DOCA_SUCCESS);
  // The lengths of the three buffers, 16 bytes each, which are read when a message is sent.
  ASSERT_TRUE(run_until([] { return most_unread() >= 48; }));
  // While the process stands still, two messages and the end of the stream arrive.
  ASSERT_EQ(::kill(child.pid(), SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child.pid(), &status, WUNTRACED), child.pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  send_text("first");
  send_text("second");
  ASSERT_TRUE(run_until([&] { return sender_.results.size() == 2; }));
  end_of(sender_);
  stop(server_side_);
  ASSERT_EQ(::kill(child.pid(), SIGCONT), 0);
  status = child.wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace offload::doca
