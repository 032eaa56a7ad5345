// RDMA in kernels, by threads, in front of fake_verbs.cpp: two connections of a context, to each
// other.
#include <doca_buf_array.h>
#include <doca_gpunetio.h>
#include <doca_mmap.h>
#include <doca_rdma.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <doca_gpunetio_dev_rdma.cuh>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/doca/verbs/fake_device.hpp"
#include "tests/rdma/fake_verbs.hpp"
#include "tests/support/eventually.hpp"

namespace offload::doca {
namespace {

using rdma::test::fake;
using rdma::test::fake_mutex;
using rdma::test::FakeQueuePair;

/// Carries out what the two queue pairs post, in order. Called with the lock of the fake.
void carry_out() {
  if (fake().queue_pairs.size() != 2) return;  // they are being made, or ended
  for (std::size_t i = 0; i < 2; ++i) {
    FakeQueuePair& queue = *fake().queue_pairs[i];
    FakeQueuePair& peer = *fake().queue_pairs[1 - i];
    while (!queue.sends.empty()) {
      const rdma::test::Posted& work = queue.sends.front();
      std::vector<std::byte> bytes = work.inlined;
      for (const ibv_sge& piece : work.pieces) {
        const auto* const from = std::bit_cast<const std::byte*>(piece.addr);
        if (work.inlined.empty()) bytes.insert(bytes.end(), from, from + piece.length);
      }
      const ibv_wr_opcode opcode = work.send.opcode;
      const bool writes = opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
      if (opcode != IBV_WR_RDMA_WRITE) {
        if (fake().shared_receives.empty()) return;  // until there is one
        const rdma::test::Posted receive = fake().shared_receives.front();
        fake().shared_receives.pop_front();
        ibv_wc told{};
        told.wr_id = receive.send.wr_id;
        told.qp_num = peer.native.qp_num;
        told.opcode = writes ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
        if (opcode != IBV_WR_SEND) told.wc_flags = IBV_WC_WITH_IMM;
        told.imm_data = work.send.imm_data;
        if (!writes && !bytes.empty()) {
          std::memcpy(std::bit_cast<void*>(receive.pieces.at(0).addr), bytes.data(), bytes.size());
        }
        fake().completions.push_back(told);
      }
      if (writes && !bytes.empty()) {
        std::memcpy(std::bit_cast<void*>(work.send.wr.rdma.remote_addr), bytes.data(),
                    bytes.size());
      }
      fake().finish_send(queue);
    }
  }
}

class DocaRdmaKernelTest : public DocaFakeDeviceTest {
 protected:
  static constexpr std::uint32_t kQueue = 16;
  static constexpr std::size_t kPiece = 64;

  DocaRdmaKernelTest() {
    ::setenv("OFFLOAD_DOCA_GPUS", "17:00.0", 1);
    EXPECT_EQ(doca_gpu_create("17:00.0", &gpu_), DOCA_SUCCESS);
    ::unsetenv("OFFLOAD_DOCA_GPUS");
    EXPECT_EQ(doca_mmap_create(&mmap_), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_set_permissions(
                  mmap_, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE),
              DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_set_memrange(mmap_, bytes_.data(), bytes_.size()), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_add_dev(mmap_, dev_), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_start(mmap_), DOCA_SUCCESS);
    const void* blob = nullptr;
    std::size_t size = 0;
    EXPECT_EQ(doca_mmap_export_rdma(mmap_, dev_, &blob, &size), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_create_from_export(nullptr, blob, size, dev_, &peer_mmap_), DOCA_SUCCESS);
    local_array_ = make_array(mmap_);
    remote_array_ = make_array(peer_mmap_);
    local_ = buf_of(local_array_);
    remote_ = buf_of(remote_array_);

    EXPECT_EQ(doca_rdma_create(dev_, &rdma_), DOCA_SUCCESS);
    EXPECT_EQ(doca_rdma_set_permissions(
                  rdma_, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE),
              DOCA_SUCCESS);
    EXPECT_EQ(doca_rdma_set_send_queue_size(rdma_, kQueue), DOCA_SUCCESS);
    EXPECT_EQ(doca_rdma_set_recv_queue_size(rdma_, kQueue), DOCA_SUCCESS);
    EXPECT_EQ(doca_rdma_set_max_num_connections(rdma_, 2), DOCA_SUCCESS);
    ctx_ = doca_rdma_as_ctx(rdma_);
    EXPECT_EQ(doca_ctx_start(ctx_), DOCA_ERROR_BAD_STATE) << "it has no progress engine";
    EXPECT_EQ(doca_ctx_set_datapath_on_gpu(ctx_, gpu_), DOCA_SUCCESS);
    EXPECT_EQ(doca_rdma_get_gpu_handle(rdma_, &kernel_), DOCA_ERROR_BAD_STATE);
    start();
  }
  ~DocaRdmaKernelTest() override {
    EXPECT_EQ(doca_ctx_stop(ctx_), DOCA_SUCCESS);
    EXPECT_EQ(doca_rdma_destroy(rdma_), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_arr_destroy(local_array_), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_arr_destroy(remote_array_), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_destroy(peer_mmap_), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_destroy(mmap_), DOCA_SUCCESS);
    EXPECT_EQ(doca_gpu_destroy(gpu_), DOCA_SUCCESS);
  }

  void start() {
    {
      const std::lock_guard lock(fake_mutex());
      fake().on_poll = carry_out;
    }
    ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
    ASSERT_EQ(doca_rdma_get_gpu_handle(rdma_, &kernel_), DOCA_SUCCESS);
    std::vector<std::byte> described[2];
    doca_rdma_connection* connections[2] = {};
    for (int i = 0; i < 2; ++i) {
      const void* details = nullptr;
      std::size_t size = 0;
      ASSERT_EQ(doca_rdma_export(rdma_, &details, &size, &connections[i]), DOCA_SUCCESS);
      const auto* const bytes = static_cast<const std::byte*>(details);
      described[i].assign(bytes, bytes + size);
    }
    for (int i = 0; i < 2; ++i) {
      const std::vector<std::byte>& peer = described[1 - i];
      ASSERT_EQ(doca_rdma_connect(rdma_, peer.data(), peer.size(), connections[i]), DOCA_SUCCESS);
    }
    connection_ = connections[0];
    ASSERT_EQ(doca_gpu_dev_rdma_get_recv(kernel_, &receives_), DOCA_SUCCESS);
  }
  doca_buf_arr* make_array(doca_mmap* mmap) {
    doca_buf_arr* array = nullptr;
    EXPECT_EQ(doca_buf_arr_create(1, &array), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_arr_set_target_gpu(array, gpu_), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_arr_set_params(array, mmap, bytes_.size(), 0), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_arr_start(array), DOCA_SUCCESS);
    return array;
  }
  static doca_gpu_buf* buf_of(doca_buf_arr* array) {
    doca_gpu_buf_arr* handle = nullptr;
    doca_gpu_buf* buf = nullptr;
    EXPECT_EQ(doca_buf_arr_get_gpu_handle(array, &handle), DOCA_SUCCESS);
    EXPECT_EQ(doca_gpu_dev_buf_get_buf(handle, 0, &buf), DOCA_SUCCESS);
    return buf;
  }
  std::uint8_t* piece(std::size_t index) { return &bytes_[index * kPiece]; }
  void fill(std::size_t index, std::uint8_t value) { std::memset(piece(index), value, kPiece); }
  /// Writes one piece to another, without an immediate.
  doca_error_t write(std::uint32_t connection, std::size_t from, std::size_t to) {
    return doca_gpu_dev_rdma_write_strong(kernel_, connection, remote_, to * kPiece, local_,
                                          from * kPiece, kPiece, 0, DOCA_GPU_RDMA_WRITE_FLAG_NONE);
  }
  /// Waits for all operations; returns the error, and checks their number.
  doca_error_t wait(std::uint32_t expected = 0) {
    std::uint32_t count = 0;
    const doca_error_t result = doca_gpu_dev_rdma_wait_all(kernel_, &count);
    if (result == DOCA_SUCCESS) {
      EXPECT_EQ(count, expected);
    }
    return result;
  }

  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(32 * kPiece);
  doca_gpu* gpu_ = nullptr;
  doca_mmap* mmap_ = nullptr;
  doca_mmap* peer_mmap_ = nullptr;
  doca_buf_arr* local_array_ = nullptr;
  doca_buf_arr* remote_array_ = nullptr;
  doca_gpu_buf* local_ = nullptr;
  doca_gpu_buf* remote_ = nullptr;
  doca_rdma* rdma_ = nullptr;
  doca_ctx* ctx_ = nullptr;
  doca_rdma_connection* connection_ = nullptr;
  doca_gpu_dev_rdma* kernel_ = nullptr;
  doca_gpu_dev_rdma_r* receives_ = nullptr;
};

TEST_F(DocaRdmaKernelTest, ThreadsOfAKernelWriteWithOneCommit) {
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (std::size_t i = 0; i < 4; ++i) {
    fill(i, static_cast<std::uint8_t>(i + 1));
    threads.emplace_back([&, i] { failed += write(0, i, 8 + i) != DOCA_SUCCESS; });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(failed, 0);
  ASSERT_EQ(doca_gpu_dev_rdma_commit_strong(kernel_, 0), DOCA_SUCCESS);
  ASSERT_EQ(wait(4), DOCA_SUCCESS);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(std::memcmp(piece(i), piece(8 + i), kPiece), 0) << i;
  }
  EXPECT_EQ(wait(0), DOCA_SUCCESS);
}

/// Messages of both connections take the same receives, as in gpunetio_rdma_client_server_write.
TEST_F(DocaRdmaKernelTest, ReceivesTellImmediatesAndConnections) {
  fill(0, 7);
  fill(1, 8);
  ASSERT_EQ(doca_gpu_dev_rdma_recv_strong(receives_, nullptr, 0, 0, 0), DOCA_SUCCESS);
  ASSERT_EQ(doca_gpu_dev_rdma_recv_strong(receives_, local_, kPiece, 10 * kPiece, 0), DOCA_SUCCESS);
  ASSERT_EQ(doca_gpu_dev_rdma_recv_strong(receives_, local_, kPiece, 11 * kPiece, 0), DOCA_SUCCESS);
  EXPECT_EQ(doca_gpu_dev_rdma_recv_strong(receives_, local_, kPiece, 0, 1),
            DOCA_ERROR_INVALID_VALUE);
  ASSERT_EQ(doca_gpu_dev_rdma_recv_commit_strong(receives_), DOCA_SUCCESS);
  std::uint32_t count = 9;
  std::uint32_t immediates[3] = {};
  std::uint32_t connections[3] = {9, 9, 9};
  ASSERT_EQ(doca_gpu_dev_rdma_recv_wait_all(receives_, DOCA_GPU_RDMA_RECV_WAIT_FLAG_NB, &count,
                                            immediates, connections),
            DOCA_SUCCESS);
  EXPECT_EQ(count, 0U);
  ASSERT_EQ(doca_gpu_dev_rdma_write_strong(kernel_, 0, remote_, 9 * kPiece, local_, 0, kPiece, 21,
                                           DOCA_GPU_RDMA_WRITE_FLAG_IMM),
            DOCA_SUCCESS);
  ASSERT_EQ(doca_gpu_dev_rdma_commit_strong(kernel_, 0), DOCA_SUCCESS);
  ASSERT_EQ(wait(1), DOCA_SUCCESS);
  ASSERT_EQ(doca_gpu_dev_rdma_send_strong(kernel_, 1, local_, kPiece, kPiece, 22,
                                          DOCA_GPU_RDMA_SEND_FLAG_IMM),
            DOCA_SUCCESS);
  ASSERT_EQ(doca_gpu_dev_rdma_send_strong(kernel_, 1, local_, 0, kPiece, 23,
                                          DOCA_GPU_RDMA_SEND_FLAG_NONE),
            DOCA_SUCCESS);
  ASSERT_EQ(doca_gpu_dev_rdma_commit_strong(kernel_, 1), DOCA_SUCCESS);
  ASSERT_EQ(doca_gpu_dev_rdma_recv_wait_all(receives_, DOCA_GPU_RDMA_RECV_WAIT_FLAG_B, &count,
                                            immediates, connections),
            DOCA_SUCCESS);
  EXPECT_EQ(count, 3U);
  EXPECT_EQ(immediates[0], 21U);
  EXPECT_EQ(immediates[1], 22U);
  EXPECT_EQ(immediates[2], 0U) << "it has none";
  EXPECT_EQ(connections[0], 1U);  // the peer of the sender
  EXPECT_EQ(connections[1], 0U);
  EXPECT_EQ(connections[2], 0U);
  EXPECT_EQ(std::memcmp(piece(9), piece(0), kPiece), 0);
  EXPECT_EQ(std::memcmp(piece(10), piece(1), kPiece), 0);
  EXPECT_EQ(std::memcmp(piece(11), piece(0), kPiece), 0);
  EXPECT_EQ(wait(2), DOCA_SUCCESS);
}

TEST_F(DocaRdmaKernelTest, BytesInAnEntryAreCopiedWhenItIsAdded) {
  std::uint8_t flag = 1;
  ASSERT_EQ(doca_gpu_dev_rdma_write_inline_strong(kernel_, 0, remote_, 5, &flag, 1, 0,
                                                  DOCA_GPU_RDMA_WRITE_FLAG_NONE),
            DOCA_SUCCESS);
  flag = 2;
  ASSERT_EQ(doca_gpu_dev_rdma_commit_strong(kernel_, 0), DOCA_SUCCESS);
  ASSERT_EQ(wait(1), DOCA_SUCCESS);
  EXPECT_EQ(bytes_[5], 1);
  // The entry behind it, by its position.
  ASSERT_EQ(doca_gpu_dev_rdma_write_inline_weak(kernel_, 0, remote_, 6, &flag, 1, 0,
                                                DOCA_GPU_RDMA_WRITE_FLAG_NONE, 1),
            DOCA_SUCCESS);
  ASSERT_EQ(doca_gpu_dev_rdma_commit_weak(kernel_, 0, 1), DOCA_SUCCESS);
  ASSERT_EQ(wait(1), DOCA_SUCCESS);
  EXPECT_EQ(bytes_[6], 2);
  const std::vector<std::uint8_t> many(65);
  EXPECT_EQ(doca_gpu_dev_rdma_write_inline_strong(kernel_, 0, remote_, 0,
                                                  const_cast<std::uint8_t*>(many.data()),
                                                  many.size(), 0, DOCA_GPU_RDMA_WRITE_FLAG_NONE),
            DOCA_ERROR_INVALID_VALUE);
}

TEST_F(DocaRdmaKernelTest, EntriesAreUsedAgainOnceTheyHaveEnded) {
  for (std::uint32_t i = 0; i < kQueue; ++i) ASSERT_EQ(write(1, 0, 1), DOCA_SUCCESS);
  EXPECT_EQ(write(1, 0, 1), DOCA_ERROR_AGAIN);
  std::uint8_t flag = 0;
  EXPECT_EQ(doca_gpu_dev_rdma_write_inline_weak(kernel_, 1, remote_, 0, &flag, 1, 0,
                                                DOCA_GPU_RDMA_WRITE_FLAG_NONE, kQueue),
            DOCA_ERROR_AGAIN);
  ASSERT_EQ(doca_gpu_dev_rdma_commit_strong(kernel_, 1), DOCA_SUCCESS);
  ASSERT_EQ(wait(kQueue), DOCA_SUCCESS);
  EXPECT_EQ(write(1, 0, 1), DOCA_SUCCESS);
  EXPECT_EQ(write(2, 0, 1), DOCA_ERROR_INVALID_VALUE) << "there is no such connection";
  EXPECT_EQ(doca_gpu_dev_rdma_commit_strong(kernel_, 2), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_gpu_dev_rdma_commit_weak(kernel_, 2, 1), DOCA_ERROR_INVALID_VALUE);
}

TEST_F(DocaRdmaKernelTest, MemoryOutsideOfItsMmapFailsTheConnection) {
  ASSERT_EQ(write(0, 32, 1), DOCA_SUCCESS);
  ASSERT_EQ(doca_gpu_dev_rdma_commit_strong(kernel_, 0), DOCA_SUCCESS);
  EXPECT_EQ(wait(), DOCA_ERROR_IO_FAILED);
  EXPECT_EQ(write(0, 0, 1), DOCA_ERROR_IO_FAILED);
  EXPECT_EQ(doca_gpu_dev_rdma_commit_strong(kernel_, 0), DOCA_ERROR_IO_FAILED);
  // The peer's memory, too; and an exported mmap is no memory of this side.
  ASSERT_EQ(write(1, 0, 32), DOCA_SUCCESS);
  ASSERT_EQ(doca_gpu_dev_rdma_commit_strong(kernel_, 1), DOCA_SUCCESS);
  EXPECT_TRUE(support::eventually([&] { return write(1, 0, 1) == DOCA_ERROR_IO_FAILED; }));
  ASSERT_EQ(doca_gpu_dev_rdma_recv_strong(receives_, remote_, kPiece, 0, 0), DOCA_SUCCESS);
  ASSERT_EQ(doca_gpu_dev_rdma_recv_commit_strong(receives_), DOCA_SUCCESS);
  EXPECT_TRUE(support::eventually([&] {
    return doca_gpu_dev_rdma_recv_strong(receives_, nullptr, 0, 0, 0) == DOCA_ERROR_IO_FAILED;
  }));
}

TEST_F(DocaRdmaKernelTest, AnErrorOfTheDeviceFailsItsConnectionAlone) {
  {
    const std::lock_guard lock(fake_mutex());
    fake().on_poll = [] {
      if (fake().queue_pairs.size() != 2) return;
      FakeQueuePair& queue = *fake().queue_pairs.at(0);
      if (!queue.sends.empty()) fake().finish_send(queue, IBV_WC_REM_ACCESS_ERR);
      FakeQueuePair& other = *fake().queue_pairs.at(1);
      if (!other.sends.empty()) fake().finish_send(other);
    };
  }
  ASSERT_EQ(write(0, 0, 1), DOCA_SUCCESS);
  ASSERT_EQ(doca_gpu_dev_rdma_commit_strong(kernel_, 0), DOCA_SUCCESS);
  EXPECT_EQ(wait(), DOCA_ERROR_IO_FAILED);
  ASSERT_EQ(write(1, 0, 1), DOCA_SUCCESS);
  ASSERT_EQ(doca_gpu_dev_rdma_commit_strong(kernel_, 1), DOCA_SUCCESS);
  EXPECT_EQ(kernel_->connections[1].committed, 1U);
  EXPECT_TRUE(support::eventually(
      [&] { return offload_gpu_comch_load(&kernel_->connections[1].words->events) == 1; }));
}

TEST_F(DocaRdmaKernelTest, AStopEndsTheCallsOfKernels) {
  doca_rdma_task_send* task = nullptr;
  const auto ended = [](doca_rdma_task_send*, doca_data, doca_data) {};
  EXPECT_EQ(doca_rdma_task_send_set_conf(rdma_, ended, ended, 1), DOCA_ERROR_BAD_STATE);
  ASSERT_EQ(doca_ctx_stop(ctx_), DOCA_SUCCESS);
  EXPECT_EQ(write(0, 0, 1), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_gpu_dev_rdma_commit_strong(kernel_, 1), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_gpu_dev_rdma_recv_strong(receives_, nullptr, 0, 0, 0), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_rdma_task_send_set_conf(rdma_, ended, ended, 1), DOCA_SUCCESS);
  start();  // it is whole again
  EXPECT_EQ(doca_rdma_task_send_allocate_init(rdma_, connection_, nullptr, {}, &task),
            DOCA_ERROR_NOT_SUPPORTED);
  ASSERT_EQ(write(0, 0, 1), DOCA_SUCCESS);
  ASSERT_EQ(doca_gpu_dev_rdma_commit_strong(kernel_, 0), DOCA_SUCCESS);
  EXPECT_EQ(wait(1), DOCA_SUCCESS);
  EXPECT_EQ(doca_rdma_get_gpu_handle(nullptr, &kernel_), DOCA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace offload::doca
