#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "softcard/card/card.hpp"
#include "tests/rdma/fake_mlx5.hpp"
#include "tests/rdma_tasks/tool/bring_up/bring_up_fixture.hpp"

/// The bring-up of an mlx5 card: libmlx5's functions are the test's, and the model reads the rings
/// at the card's registers.
namespace offload::rdma_tool {
namespace {

using rdma::test::fake_mlx5;
using rdma::test::FakeQueuePair;

/// The model on its own thread, from when two queue pairs of libmlx5 are connected until one ends.
class CardThread {
 public:
  CardThread() {
    fake().first_number = 0x40;  // as the model numbers its queue pairs
    fake().make_key = [this](void* address, std::size_t length) {
      const std::lock_guard lock(mutex_);
      return card_.register_memory({static_cast<std::byte*>(address), length}, {true, true, true});
    };
    fake().on_modify = [this](FakeQueuePair& queue) { add(queue); };
    fake().on_destroy = [this](FakeQueuePair& queue) {
      end();
      rdma::test::forget(queue);
    };
  }
  CardThread& operator=(CardThread&&) = delete;
  ~CardThread() { end(); }

  [[nodiscard]] const std::string& fault() const { return card_.fault(); }
  bool is_deaf = false;  ///< carries out nothing

 private:
  void add(FakeQueuePair& queue) {
    if (queue.attributes.qp_state != IBV_QPS_RTS || !rdma::test::is_cards(queue)) return;
    numbers_.push_back(card_.add(rdma::test::memory_at_card(queue)));
    EXPECT_EQ(numbers_.back(), queue.native.qp_num);
    if (numbers_.size() % 2 != 0 || is_deaf) return;
    card_.connect(numbers_.end()[-2], numbers_.back());
    stop_ = false;
    thread_ = std::thread([this] {
      while (!stop_) {
        const std::lock_guard lock(mutex_);
        if (!card_.progress()) std::this_thread::yield();
      }
    });
  }
  void end() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  std::mutex mutex_;  ///< of the card
  rdma::model::Card card_;
  std::vector<std::uint32_t> numbers_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class CardBringUpTest : public BringUpFixture {
 protected:
  CardBringUpTest() { rdma::test::reset_fake_mlx5(); }
  ~CardBringUpTest() override { fake_mlx5() = {}; }

  CardThread card_;
};

TEST_F(CardBringUpTest, TheCardCarriesOutItself) {
  EXPECT_TRUE(run()) << text();
  EXPECT_EQ(card_.fault(), "");
  expect("card rings", StepVerdict::good,
         "fake0 itself carries them out, a thread rings its register with write combining");
  expect("card write", StepVerdict::good, "100 writes of 4096 bytes are right");
  expect("card immediate", StepVerdict::good, "100 times each way");
  expect("card atomic", StepVerdict::good, "100 times each way");
  expect("card rate", StepVerdict::good, " entries/s of 64 bytes");
  expect("proxy write", StepVerdict::good, "100 writes of 4096 bytes are right");
  expect("data path", StepVerdict::good, "with gpu the card carries out its entries");
}

class GpuCardBringUpTest : public CardBringUpTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override { take_gpu(GetParam()); }
};

TEST_P(GpuCardBringUpTest, AKernelPostsToTheRingsOfTheCard) {
  EXPECT_TRUE(run()) << text();
  EXPECT_EQ(card_.fault(), "");
  expect("card rings", StepVerdict::good, "fake0 itself carries them out, ");
  expect("card write", StepVerdict::good, "100 writes of 4096 bytes are right");
  expect("card immediate", StepVerdict::good, "100 times each way");
  expect("card atomic", StepVerdict::good, "100 times each way");
  expect("data path", StepVerdict::good,
         "--data-path auto is gpu for a persistent kernel: the card carries out its entries");
}

TEST_P(GpuCardBringUpTest, ACardThatExecutesNothingIsAnError) {
  card_.is_deaf = true;
  options_.run.timeout = core::seconds(1);
  expect_error("card write", "timed out waiting for", "--data-path cpu");
  expect("data path", StepVerdict::error, "which does not work");
}

INSTANTIATE_TEST_SUITE_P(gpu, GpuCardBringUpTest, testing::Values("gpu:0"));

TEST_F(CardBringUpTest, ARegisterWithoutWriteCombiningIsNamed) {
  fake_mlx5().combines_writes = false;
  fake().fail_call = "alloc_td";
  fake().fail_with = EOPNOTSUPP;
  EXPECT_TRUE(run()) << text();
  expect("card rings", StepVerdict::good, "a thread rings its register without write combining");
}

TEST_F(CardBringUpTest, ACardWithoutARegisterIsReplacedByAnEmulator) {
  fake().fail_call = "alloc_td";
  fake().fail_with = EOPNOTSUPP;
  EXPECT_TRUE(run()) << text();
  expect("card rings", StepVerdict::warning, "not available: make a thread domain");
  expect("proxy write", StepVerdict::good, "100 writes of 4096 bytes are right");
  expect("data path", StepVerdict::good, "with gpu a thread carries out its entries");
}

TEST_F(CardBringUpTest, ACardThatExecutesNothingIsAWarningWithoutAGpu) {
  card_.is_deaf = true;
  options_.run.timeout = core::seconds(1);
  EXPECT_TRUE(run()) << text();
  expect("card write", StepVerdict::warning, "timed out waiting for");
  expect("proxy write", StepVerdict::good, "100 writes of 4096 bytes are right");
  expect("data path", StepVerdict::warning,
         "with gpu the card carries out its entries, which does not work");
}

}  // namespace
}  // namespace offload::rdma_tool
