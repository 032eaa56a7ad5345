// Device functions of verbs, by threads of a CPU, with the model of a card behind the queues.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <doca_gpunetio_dev_verbs_counter.cuh>
#include <doca_gpunetio_dev_verbs_cq.cuh>
#include <doca_gpunetio_dev_verbs_onesided.cuh>
#include <doca_gpunetio_dev_verbs_qp.cuh>
#include <doca_gpunetio_dev_verbs_twosided.cuh>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tests/doca/verbs/kernel_pair.hpp"

namespace offload::doca {
namespace {

using kernels::rdma::test::ModelCard;

constexpr auto kGpu = DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU;
constexpr auto kAuto = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO;
constexpr auto kThread = DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD;
constexpr auto kBigEndian = [](std::uint32_t key) { return __builtin_bswap32(key); };

/// Two queue pairs, each connected to one of the peer. `GetParam()`: the rudeness of the card.
class DocaGpuVerbsTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  static constexpr std::uint32_t kBlocks = 32;
  static constexpr std::uint32_t kReceives = 8;
  static constexpr std::size_t kThreads = 4;
  static constexpr std::size_t kRounds = 64;  // so that the rings begin again
  static constexpr std::size_t kBytes = 24;   // of an operation
  static constexpr std::size_t kArea = kThreads * kBytes;

  DocaGpuVerbsTest() : card_(GetParam()) {
    key_ = kBigEndian(card_.add_memory(bytes_.data(), bytes_.size()));
    read_only_ = kBigEndian(card_.add_readable(bytes_.data(), bytes_.size()));
    card_.connect(main_.model, peer_.model);
    card_.connect(companion_.model, peer_companion_.model);
  }
  ~DocaGpuVerbsTest() override { EXPECT_EQ(card_.stop(), ""); }

  [[nodiscard]] doca_gpu_dev_verbs_addr at(std::size_t offset) {
    return {reinterpret_cast<std::uint64_t>(&bytes_[offset]), key_};
  }
  [[nodiscard]] std::uint64_t word(std::size_t offset) const {
    std::uint64_t value = 0;
    std::memcpy(&value, &bytes_[offset], sizeof value);
    return value;
  }
  /// Runs `work`(thread) on each of the threads; returns the number of calls that failed.
  static int run(const std::function<int(std::size_t)>& work) {
    std::atomic<int> failed{0};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] { failed += work(i); });
    }
    for (std::thread& thread : threads) thread.join();
    return failed;
  }

  static constexpr std::size_t kFrom = 0;
  static constexpr std::size_t kTo = kArea;
  static constexpr std::size_t kWords = 2 * kArea;               // at the peer
  static constexpr std::size_t kBefore = kWords + kThreads * 8;  // old values
  static constexpr std::size_t kDump = kBefore + kThreads * 8;

  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(kDump + 8);
  ModelCard card_;
  KernelPair main_{card_, kBlocks, kReceives};
  KernelPair peer_{card_, kBlocks, kReceives};
  KernelPair companion_{card_, kBlocks, kReceives};
  KernelPair peer_companion_{card_, kBlocks, kReceives};
  doca_gpu_dev_verbs_qp* qp_ = &main_.handle;
  std::uint32_t key_ = 0;
  std::uint32_t read_only_ = 0;
};

TEST_P(DocaGpuVerbsTest, ThreadsPutAndGetOnOneQueue) {
  card_.start();
  EXPECT_EQ(run([&](std::size_t i) {
              int failed = 0;
              const std::size_t from = kFrom + i * kBytes;
              const std::size_t to = kTo + i * kBytes;
              for (std::size_t round = 0; round < kRounds; ++round) {
                doca_gpu_dev_verbs_ticket_t ticket = 0;
                std::memset(&bytes_[from], static_cast<int>(16 * round + i), kBytes);
                failed += doca_gpu_dev_verbs_put(qp_, at(to), at(from), kBytes, &ticket) != 0;
                failed += doca_gpu_dev_verbs_poll_cq_at(doca_gpu_dev_verbs_qp_get_cq_sq(qp_),
                                                        ticket) != 0;
                failed += std::memcmp(&bytes_[from], &bytes_[to], kBytes) != 0;
                std::memset(&bytes_[from], 0, kBytes);
                failed +=
                    doca_gpu_dev_verbs_get<kGpu, kAuto, kThread, DOCA_GPUNETIO_VERBS_MCST_ENABLED,
                                           DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED>(
                        qp_, at(to), at(from), kBytes, at(kDump), &ticket) != 0;
                failed += std::memcmp(&bytes_[from], &bytes_[to], kBytes) != 0;
              }
              return failed;
            }),
            0);
  EXPECT_EQ(doca_gpu_dev_verbs_wait(qp_), 0);
  EXPECT_EQ(qp_->sq_wqe_pi, 3 * kThreads * kRounds);
  EXPECT_EQ(qp_->cq_sq.cqe_ci, qp_->sq_wqe_pi);
}

TEST_P(DocaGpuVerbsTest, AReadIsWaitedForWithAllBeforeIt) {
  card_.start();
  std::memset(&bytes_[kTo], 7, kBytes);
  doca_gpu_dev_verbs_ticket_t ticket = 0;
  ASSERT_EQ(doca_gpu_dev_verbs_get(qp_, at(kTo), at(kFrom), kBytes, {0, 0}, &ticket), 0);
  ASSERT_EQ(doca_gpu_dev_verbs_get_wait(qp_, {0, 0}), 0);
  EXPECT_EQ(bytes_[kFrom + kBytes - 1], 7);
  ASSERT_EQ(doca_gpu_dev_verbs_get(qp_, at(kTo), at(kFrom), kBytes, {0, 0}, &ticket), 0);
  ASSERT_EQ(
      (doca_gpu_dev_verbs_get_wait<kGpu, kAuto, DOCA_GPUNETIO_VERBS_MCST_ENABLED>(qp_, at(kDump))),
      0);
  EXPECT_EQ(qp_->sq_wqe_pi, 3U) << "the card has read the memory back";
}

TEST_P(DocaGpuVerbsTest, ASignalComesBehindItsData) {
  card_.start();
  EXPECT_EQ(run([&](std::size_t i) {
              int failed = 0;
              for (std::size_t round = 0; round < kRounds; ++round) {
                failed += doca_gpu_dev_verbs_put_signal(
                              qp_, at(kTo + i * kBytes), at(kFrom + i * kBytes), kBytes,
                              at(kWords + i * 8), at(kBefore + i * 8), i + 1) != 0;
              }
              return failed;
            }),
            0);
  ASSERT_EQ(doca_gpu_dev_verbs_wait(qp_), 0);
  for (std::size_t i = 0; i < kThreads; ++i) {
    EXPECT_EQ(word(kWords + i * 8), kRounds * (i + 1));
    EXPECT_EQ(word(kBefore + i * 8), (kRounds - 1) * (i + 1));
  }
}

TEST_P(DocaGpuVerbsTest, ACompanionCountsWhatIsWritten) {
  card_.start();
  std::memset(&bytes_[kFrom], 9, kArea);
  EXPECT_EQ(run([&](std::size_t i) {
              int failed = 0;
              for (std::size_t round = 0; round < kRounds; ++round) {
                failed += doca_gpu_dev_verbs_put_counter(
                              qp_, at(kTo + i * kBytes), at(kFrom + i * kBytes), kBytes,
                              &companion_.handle, at(kWords + i * 8), at(kBefore + i * 8), 2) != 0;
              }
              return failed;
            }),
            0);
  ASSERT_EQ(doca_gpu_dev_verbs_wait(&companion_.handle), 0);
  EXPECT_EQ(std::memcmp(&bytes_[kFrom], &bytes_[kTo], kArea), 0)
      << "it has counted before the data was there";
  for (std::size_t i = 0; i < kThreads; ++i) EXPECT_EQ(word(kWords + i * 8), 2 * kRounds);
  ASSERT_EQ(doca_gpu_dev_verbs_wait(qp_), 0);
}

TEST_P(DocaGpuVerbsTest, ThreadsSendToReceivesOfThreads) {
  card_.start();
  std::atomic<std::size_t> posted{0};
  std::atomic<int> failed{0};
  std::memset(&bytes_[kFrom], 5, kArea);
  std::thread sender([&] {
    for (std::size_t i = 0; i < kThreads * kRounds; ++i) {
      while (posted.load() <= i) std::this_thread::yield();
      doca_gpu_dev_verbs_ticket_t ticket = 0;
      failed += doca_gpu_dev_verbs_send(qp_, at(kFrom), kBytes, &ticket) != 0;
    }
    failed += doca_gpu_dev_verbs_wait(qp_) != 0;
  });
  failed += run([&](std::size_t i) {
    int wrong = 0;
    for (std::size_t round = 0; round < kRounds; ++round) {
      doca_gpu_dev_verbs_ticket_t ticket = 0;
      mlx5_cqe64* cqe = nullptr;
      wrong += doca_gpu_dev_verbs_recv(&peer_.handle, at(kTo + i * kBytes), kBytes, &ticket) != 0;
      ++posted;
      wrong += doca_gpu_dev_verbs_recv_wait(&peer_.handle, {0, 0}, &ticket, &cqe) != 0;
      wrong += bytes_[kTo + i * kBytes + kBytes - 1] != 5;
    }
    return wrong;
  });
  sender.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(peer_.handle.cq_rq.cqe_ci, kThreads * kRounds);
}

TEST_P(DocaGpuVerbsTest, AReceiveTellsItsBytes) {
  card_.start();
  doca_gpu_dev_verbs_ticket_t ticket = 0;
  mlx5_cqe64* cqe = nullptr;
  ASSERT_EQ(doca_gpu_dev_verbs_recv(&peer_.handle, at(kTo), kBytes, &ticket), 0);
  ASSERT_EQ(doca_gpu_dev_verbs_recv(&peer_.handle, at(kTo), kBytes, &ticket), 0);
  EXPECT_EQ(ticket, 1U);
  ASSERT_EQ(doca_gpu_dev_verbs_send(qp_, at(kFrom), kBytes, &ticket), 0);
  ASSERT_EQ(doca_gpu_dev_verbs_send(qp_, at(kFrom), 3, &ticket), 0);
  ASSERT_EQ((doca_gpu_dev_verbs_recv_wait<kGpu, kAuto, DOCA_GPUNETIO_VERBS_MCST_ENABLED>(
                &peer_.handle, at(kDump), &cqe)),
            0);
  EXPECT_EQ(doca_gpu_dev_verbs_cqe_get_bytes(cqe), 3U);
  EXPECT_EQ(doca_gpu_dev_verbs_cqe_is_inline(cqe), 0);
  EXPECT_EQ(doca_gpu_dev_verbs_cqe_get_inl_data(cqe), reinterpret_cast<std::uint8_t*>(cqe));
  reinterpret_cast<kernels::rdma::Cqe*>(cqe)->words[kernels::rdma::kCqeOwner] |=
      kBigEndian(4);  // 32 bytes
  EXPECT_EQ(doca_gpu_dev_verbs_cqe_is_inline(cqe), 1);
  EXPECT_EQ(doca_gpu_dev_verbs_poll_cq_at(&peer_.handle.cq_rq, 0), 0);
}

/// Some programs place their entries themselves.
TEST_P(DocaGpuVerbsTest, EntriesCanBePlacedWithoutAReservation) {
  card_.start();
  for (std::size_t round = 0; round < kRounds; ++round) {
    const auto begin = doca_gpu_dev_verbs_atomic_read(&qp_->sq_wqe_pi);
    doca_gpu_dev_verbs_fence_acquire();
    EXPECT_EQ(begin, round * kThreads);
    EXPECT_EQ(run([&](std::size_t i) {
                const std::uint64_t position = begin + i;
                std::memset(&bytes_[kFrom + i * kBytes], static_cast<int>(round + i), kBytes);
                doca_gpu_dev_verbs_wqe_prepare_write(
                    qp_, doca_gpu_dev_verbs_get_wqe_ptr(qp_, position & qp_->sq_wqe_mask), position,
                    DOCA_GPUNETIO_MLX5_OPCODE_RDMA_WRITE, DOCA_GPUNETIO_MLX5_WQE_CTRL_CQ_UPDATE, 0,
                    at(kTo + i * kBytes).addr, key_, at(kFrom + i * kBytes).addr, key_, kBytes);
                return 0;
              }),
              0);
    doca_gpu_dev_verbs_submit(qp_, begin + kThreads);
    ASSERT_EQ(doca_gpu_dev_verbs_poll_cq_at(&qp_->cq_sq, begin + kThreads - 1), 0);
    ASSERT_EQ(std::memcmp(&bytes_[kFrom], &bytes_[kTo], kArea), 0) << round;
  }
}

/// One that is submitted before an earlier one is ready waits for it.
TEST_P(DocaGpuVerbsTest, ReservedEntriesAreHandedOverInOrder) {
  card_.start();
  const auto prepare = [&](std::uint64_t position, std::uint32_t flags) {
    doca_gpu_dev_verbs_wqe_prepare_write(qp_, doca_gpu_dev_verbs_get_wqe_ptr(qp_, position),
                                         position, DOCA_GPUNETIO_MLX5_OPCODE_RDMA_WRITE, flags, 0,
                                         at(kTo).addr, key_, at(kFrom).addr, key_, kBytes);
  };
  const std::uint64_t first = doca_gpu_dev_verbs_reserve_wq_slots(qp_, 1);
  const std::uint64_t second = doca_gpu_dev_verbs_reserve_wq_slots(qp_, 2);
  ASSERT_EQ(first, 0U);
  ASSERT_EQ(second, 1U);
  prepare(second, DOCA_GPUNETIO_MLX5_WQE_CTRL_CQ_ERROR_UPDATE);
  prepare(second + 1, DOCA_GPUNETIO_MLX5_WQE_CTRL_CQ_UPDATE);
  doca_gpu_dev_verbs_mark_wqes_ready(qp_, second, second + 1);
  doca_gpu_dev_verbs_submit(qp_, second + 2);
  EXPECT_EQ(kernels::rdma::end_of(qp_->sends.state->published), 0U);
  std::memset(&bytes_[kFrom], 3, kBytes);
  prepare(first, DOCA_GPUNETIO_MLX5_WQE_CTRL_CQ_UPDATE);
  doca_gpu_dev_verbs_mark_wqes_ready(qp_, first, first);
  doca_gpu_dev_verbs_submit(qp_, first + 1);
  ASSERT_EQ(doca_gpu_dev_verbs_wait(qp_), 0);
  EXPECT_EQ(bytes_[kTo], 3);
  EXPECT_EQ(qp_->cq_sq.cqe_ci, 3U);
}

TEST_P(DocaGpuVerbsTest, AFailedOperationEndsAllWaits) {
  card_.start();
  doca_gpu_dev_verbs_ticket_t ticket = 0;
  ASSERT_EQ(doca_gpu_dev_verbs_wait(qp_), 0) << "nothing was posted";
  const doca_gpu_dev_verbs_addr refused{at(kTo).addr, read_only_};
  ASSERT_EQ(doca_gpu_dev_verbs_put(qp_, refused, at(kFrom), kBytes, &ticket), 0);
  EXPECT_EQ(doca_gpu_dev_verbs_wait(qp_), -EIO);
  EXPECT_EQ(doca_gpu_dev_verbs_put(qp_, at(kTo), at(kFrom), kBytes, &ticket), -EIO);
  EXPECT_EQ(doca_gpu_dev_verbs_reserve_wq_slots(qp_, 1), UINT64_MAX);
  doca_gpu_dev_verbs_mark_wqes_ready(qp_, UINT64_MAX, UINT64_MAX);
  doca_gpu_dev_verbs_submit(qp_, 0);  // what a program computes of that
  EXPECT_EQ(qp_->sq_wqe_pi, 1U);
}

TEST(DocaGpuVerbs, AThreadIsTheOnlyLaneAndItsClockRuns) {
  EXPECT_EQ(doca_gpu_dev_verbs_get_lane_id(), 0U);
  const std::uint64_t begin = doca_gpu_dev_verbs_query_globaltimer();
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GE(doca_gpu_dev_verbs_query_globaltimer(), begin + 1'000'000);
}

INSTANTIATE_TEST_SUITE_P(Cards, DocaGpuVerbsTest, testing::Values(ModelCard::kPolite, 1U, 2U));

}  // namespace
}  // namespace offload::doca
