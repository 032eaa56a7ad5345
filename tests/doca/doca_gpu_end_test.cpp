#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>

#include "tests/doca/doca_gpu_fixture.hpp"

namespace offload::doca {
namespace {

/// The end of a peer, as a kernel in another process sees it.
class DocaGpuPeerEndTest : public DocaGpuTest {
 protected:
  /// Posts three buffers, tells the parent, and receives two messages behind which the stream ends.
  /// Returns the exit status.
  int run_kernel_process(int ready) {
    Side own;
    doca_comch_client* const client = make_client(own, kName);
    if (doca_ctx_start(own.ctx) != DOCA_ERROR_IN_PROGRESS) return 1;
    const auto turn_until = [&](const std::function<bool()>& reached) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (!reached() && std::chrono::steady_clock::now() < end) {
        own.turn();
        turn_ends();
      }
      return reached();
    };
    if (!turn_until([&] { return own.state() == DOCA_CTX_STATE_RUNNING; })) return 2;
    EXPECT_EQ(doca_comch_client_get_connection(client, &client_side_.connection), DOCA_SUCCESS);
    kernel_consumer_ = make_kernel_consumer();
    EXPECT_EQ(doca_ctx_start(kernel_consumer_end_.ctx), DOCA_ERROR_IN_PROGRESS);
    if (!turn_until([&] { return kernel_consumer_end_.state() == DOCA_CTX_STATE_RUNNING; })) {
      return 3;
    }
    EXPECT_EQ(doca_comch_consumer_get_gpu_handle(kernel_consumer_, &own_consumer_), DOCA_SUCCESS);
    make_array();
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(doca_dev_gpu_comch_consumer_post_recv(own_consumer_, mkey_, address_ + i * kSize,
                                                      kSize),
                DOCA_SUCCESS);
    }
    std::uint32_t count = 0;
    if (!turn_until([&] {
          EXPECT_EQ(doca_mmap_get_num_bufs(memory_.mmap, &count), DOCA_SUCCESS);
          return count == 3;
        })) {
      return 4;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the library sends their lengths
    if (::write(ready, "r", 1) != 1) return 5;
    for (const char* const expected : {"first", "second"}) {
      std::uint32_t mkey = 0;
      std::uint32_t length = 0;
      std::uintptr_t address = 0;
      if (doca_dev_gpu_comch_consumer_recv_wait(own_consumer_, &mkey, &address, &length, nullptr,
                                                nullptr, DOCA_GPU_COMCH_WAIT_FLAG_B) !=
          DOCA_SUCCESS) {
        return 6;
      }
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(address), length), expected);
    }
    std::uint32_t mkey = 0;
    std::uint32_t length = 0;
    std::uintptr_t address = 0;
    if (doca_dev_gpu_comch_consumer_recv_wait(own_consumer_, &mkey, &address, &length, nullptr,
                                              nullptr, DOCA_GPU_COMCH_WAIT_FLAG_B) !=
        DOCA_ERROR_IO_FAILED) {
      return 7;
    }
    ::_exit(testing::Test::HasFailure() ? 8 : 0);
  }
};

TEST_F(DocaGpuPeerEndTest, AKernelReceivesWhatArrivedBeforeTheEnd) {
  ASSERT_EQ(doca_ctx_start(server_side_.ctx), DOCA_SUCCESS);
  int ready[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::_exit(run_kernel_process(ready[1]));
  }
  ASSERT_GT(child, 0);
  ::close(ready[1]);
  ASSERT_TRUE(run_until([&] { return server_side_.new_consumers.size() == 1; }));
  id_ = server_side_.new_consumers[0];
  producer_ = make_producer(sender_, server_side_.connection);
  ASSERT_EQ(doca_ctx_start(sender_.ctx), DOCA_SUCCESS);
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  // While the process stands still, two messages and the end of the stream arrive.
  ASSERT_EQ(::kill(child, SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  send_text("first");
  send_text("second");
  ASSERT_TRUE(run_until([&] { return sender_.results.size() == 2; }));
  end_of(sender_);
  stop(server_side_);
  ASSERT_EQ(::kill(child, SIGCONT), 0);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace offload::doca
