#include <doca_buf_array.h>
#include <doca_eth_rxq_gpu_data_path.h>
#include <doca_eth_txq_gpu_data_path.h>
#include <doca_gpunetio.h>
#include <endian.h>

#include <array>
#include <chrono>
#include <ctime>
#include <doca_gpunetio_dev_buf.cuh>
#include <doca_gpunetio_dev_eth_rxq.cuh>
#include <doca_gpunetio_dev_eth_txq.cuh>
#include <thread>

#include "tests/doca/eth/eth_fixture.hpp"

/// Ethernet for kernels: threads of this process stand in for those of a host GPU.
namespace offload::doca {
namespace {

constexpr std::uint64_t kLong = 20'000'000'000;  // nanoseconds

/// A buffer of 64 places; contexts that no progress engine is connected to.
class EthGpuTest : public EthTest {
 protected:
  static constexpr std::uint32_t kPacket = 1600;

  void SetUp() override {
    EthTest::SetUp();
    if (IsSkipped()) return;
    ::setenv("OFFLOAD_DOCA_GPUS", "17:00.0", 1);
    ASSERT_EQ(doca_gpu_create("17:00.0", &gpu_), DOCA_SUCCESS);
    ::unsetenv("OFFLOAD_DOCA_GPUS");
  }
  void TearDown() override {
    if (rxq_ != nullptr) {
      end(doca_eth_rxq_as_doca_ctx(rxq_));
      EXPECT_EQ(doca_eth_rxq_destroy(rxq_), DOCA_SUCCESS);
    }
    if (txq_ != nullptr) {
      end(doca_eth_txq_as_doca_ctx(txq_));
      EXPECT_EQ(doca_eth_txq_destroy(txq_), DOCA_SUCCESS);
    }
    if (gpu_ != nullptr) {
      EXPECT_EQ(doca_gpu_destroy(gpu_), DOCA_SUCCESS);
    }
    EthTest::TearDown();
  }

  static void end(doca_ctx* ctx) {
    if (state_of(ctx) != DOCA_CTX_STATE_IDLE) {
      EXPECT_EQ(doca_ctx_stop(ctx), DOCA_SUCCESS);
    }
  }
  /// Makes a receive queue of `places`; returns it as kernels have it.
  doca_gpu_eth_rxq* receive(std::uint32_t places) {
    EXPECT_EQ(doca_eth_rxq_create(dev_, places, kPacket, &rxq_), DOCA_SUCCESS);
    EXPECT_EQ(doca_eth_rxq_set_type(rxq_, DOCA_ETH_RXQ_TYPE_CYCLIC), DOCA_SUCCESS);
    std::uint32_t bytes = 0;
    EXPECT_EQ(doca_eth_rxq_estimate_packet_buf_size(DOCA_ETH_RXQ_TYPE_CYCLIC, 0, 0, kPacket, places,
                                                    0, 0, 0, &bytes),
              DOCA_SUCCESS);
    doca_ctx* const ctx = doca_eth_rxq_as_doca_ctx(rxq_);
    doca_gpu_eth_rxq* of_kernel = nullptr;
    EXPECT_EQ(doca_eth_rxq_get_gpu_handle(rxq_, &of_kernel), DOCA_ERROR_BAD_STATE);
    EXPECT_EQ(doca_ctx_start(ctx), DOCA_ERROR_BAD_STATE);
    EXPECT_EQ(doca_eth_rxq_set_pkt_buf(rxq_, mmap_, 64, bytes), DOCA_SUCCESS);
    EXPECT_EQ(doca_eth_rxq_gpu_enable_mcst_qp(rxq_), DOCA_SUCCESS);
    EXPECT_EQ(doca_ctx_set_datapath_on_gpu(ctx, gpu_), DOCA_SUCCESS);
    EXPECT_EQ(doca_ctx_start(ctx), DOCA_SUCCESS);
    EXPECT_EQ(doca_eth_rxq_apply_queue_id(rxq_, 0), DOCA_SUCCESS);
    EXPECT_EQ(doca_eth_rxq_get_gpu_handle(rxq_, &of_kernel), DOCA_SUCCESS);
    return of_kernel;
  }
  /// The same for a send queue.
  doca_gpu_eth_txq* send(std::uint32_t entries, bool may_wait = false) {
    EXPECT_EQ(doca_eth_txq_create(dev_, entries, &txq_), DOCA_SUCCESS);
    EXPECT_EQ(doca_eth_txq_gpu_set_completion_on_gpu(txq_), DOCA_SUCCESS);
    if (may_wait) {
      EXPECT_EQ(doca_eth_txq_set_wait_on_time_offload(txq_), DOCA_SUCCESS);
    }
    doca_ctx* const ctx = doca_eth_txq_as_doca_ctx(txq_);
    EXPECT_EQ(doca_ctx_set_datapath_on_gpu(ctx, gpu_), DOCA_SUCCESS);
    EXPECT_EQ(doca_ctx_start(ctx), DOCA_SUCCESS);
    doca_gpu_eth_txq* of_kernel = nullptr;
    EXPECT_EQ(doca_eth_txq_get_gpu_handle(txq_, &of_kernel), DOCA_SUCCESS);
    return of_kernel;
  }
  /// Receives what comes within a long time.
  static std::vector<Bytes> frames_of(doca_gpu_eth_rxq* rxq, std::uint32_t most) {
    std::uint64_t first = 0;
    std::uint32_t count = 0;
    std::vector<doca_gpu_dev_eth_rxq_attr> attributes(most);
    EXPECT_EQ(doca_gpu_dev_eth_rxq_recv(rxq, most, kLong, &first, &count, attributes.data()),
              DOCA_SUCCESS);
    std::vector<Bytes> frames;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint8_t* const bytes = bytes_at(doca_gpu_dev_eth_rxq_get_pkt_addr(rxq, first + i));
      EXPECT_NE(attributes[i].timestamp_ns, 0U);
      frames.emplace_back(bytes, bytes + attributes[i].bytes);
    }
    return frames;
  }
  static const std::uint8_t* bytes_at(std::uint64_t address) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): as a kernel has it
    return reinterpret_cast<const std::uint8_t*>(address);
  }
  /// The key of the program's memory, as send queues want it: an array of buffers tells it.
  std::uint32_t key() {
    doca_buf_arr* array = nullptr;
    EXPECT_EQ(doca_buf_arr_create(1, &array), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_arr_set_params(array, mmap_, kPiece, 0), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_arr_set_target_gpu(array, gpu_), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_arr_start(array), DOCA_SUCCESS);
    doca_gpu_buf_arr* of_kernel = nullptr;
    EXPECT_EQ(doca_buf_arr_get_gpu_handle(array, &of_kernel), DOCA_SUCCESS);
    doca_gpu_buf* buffer = nullptr;
    EXPECT_EQ(doca_gpu_dev_buf_get_buf(of_kernel, 0, &buffer), DOCA_SUCCESS);
    std::uint32_t mkey = 0;
    EXPECT_EQ(doca_gpu_dev_buf_get_mkey(buffer, &mkey), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_arr_destroy(array), DOCA_SUCCESS);
    std::uint32_t same = 0;
    EXPECT_EQ(doca_mmap_get_mkey(mmap_, dev_, &same), DOCA_SUCCESS);
    EXPECT_EQ(same, mkey);
    return htobe32(mkey);
  }
  /// Writes a frame to a piece behind the buffer of the receive queue; returns its address.
  std::uint64_t place(std::size_t index, const Bytes& frame) {
    std::memcpy(piece(index), frame.data(), frame.size());
    return reinterpret_cast<std::uintptr_t>(piece(index));
  }

  doca_gpu* gpu_ = nullptr;
  doca_eth_rxq* rxq_ = nullptr;
  doca_eth_txq* txq_ = nullptr;
};

TEST_F(EthGpuTest, AKernelReceivesFramesInOrder) {
  doca_gpu_eth_rxq* const rxq = receive(8);
  const std::uint8_t* const begin = memory_.data() + 64;
  EXPECT_EQ(bytes_at(doca_gpu_dev_eth_rxq_get_pkt_addr(rxq, 1)), begin + kPacket);
  EXPECT_EQ(bytes_at(doca_gpu_dev_eth_rxq_get_pkt_addr(rxq, 8)), begin);
  EXPECT_EQ(doca_gpu_dev_eth_rxq_get_pkt_mkey(rxq), key());
  // Many laps of the places.
  constexpr std::uint32_t kFrames = 200;
  std::uint32_t received = 0;
  for (std::uint32_t sent = 0; sent < kFrames;) {
    for (int i = 0; i < 5; ++i, ++sent) {
      veth_.write(datagram(7, 1 + sent % 1400, static_cast<std::uint8_t>(sent)));
    }
    while (received < sent) {
      const auto frames = frames_of(rxq, 3);
      ASSERT_FALSE(frames.empty());
      ASSERT_LE(frames.size(), 3U);
      for (const Bytes& frame : frames) {
        ASSERT_EQ(frame, datagram(7, 1 + received % 1400, static_cast<std::uint8_t>(received)));
        ++received;
      }
    }
  }
}

TEST_F(EthGpuTest, PlacesAreFreeAtTheNextReceive) {
  doca_gpu_eth_rxq* const rxq = receive(4);
  for (std::uint8_t i = 0; i < 12; ++i) veth_.write(datagram(7, 10, i));
  std::uint8_t next = 0;
  while (next < 12) {
    std::uint64_t first = 0;
    std::uint32_t count = 0;
    ASSERT_EQ(doca_gpu_dev_eth_rxq_recv(rxq, 4, kLong, &first, &count, nullptr), DOCA_SUCCESS);
    ASSERT_NE(count, 0U);
    // The thread has time to write over them, and must not.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto* const bytes = bytes_at(doca_gpu_dev_eth_rxq_get_pkt_addr(rxq, first + i));
      ASSERT_EQ(bytes[42], next++);
    }
  }
}

TEST_F(EthGpuTest, AReceiveEndsWithItsTime) {
  doca_gpu_eth_rxq* const rxq = receive(4);
  std::uint64_t first = 0;
  std::uint32_t count = 1;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(doca_gpu_dev_eth_rxq_recv(rxq, 4, 5'000'000, &first, &count, nullptr), DOCA_SUCCESS);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(5));
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(doca_gpu_dev_eth_rxq_recv(rxq, 4, 0, &first, &count, nullptr), DOCA_SUCCESS);
  EXPECT_EQ(count, 0U);
}

TEST_F(EthGpuTest, TheEndOfTheContextEndsAReceive) {
  doca_gpu_eth_rxq* const rxq = receive(4);
  doca_error_t result = DOCA_SUCCESS;
  std::thread kernel([&] {
    std::uint64_t first = 0;
    std::uint32_t count = 0;
    result = doca_gpu_dev_eth_rxq_recv(rxq, 4, kLong, &first, &count, nullptr);
  });
  EXPECT_EQ(doca_mmap_stop(mmap_), DOCA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(doca_ctx_stop(doca_eth_rxq_as_doca_ctx(rxq_)), DOCA_SUCCESS);
  kernel.join();
  EXPECT_EQ(result, DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_mmap_stop(mmap_), DOCA_SUCCESS);
  std::uint32_t mkey = 0;
  EXPECT_EQ(doca_mmap_get_mkey(mmap_, dev_, &mkey), DOCA_ERROR_BAD_STATE);
  doca_dev* const other = open_device(1);
  EXPECT_EQ(doca_mmap_get_mkey(mmap_, other, &mkey), DOCA_ERROR_NOT_FOUND);
  EXPECT_EQ(doca_dev_close(other), DOCA_SUCCESS);
  EXPECT_EQ(doca_ctx_start(doca_eth_rxq_as_doca_ctx(rxq_)), DOCA_ERROR_BAD_STATE);
}

TEST_F(EthGpuTest, LongFramesAreDropped) {
  ASSERT_EQ(doca_eth_rxq_create(dev_, 4, 128, &rxq_), DOCA_SUCCESS);
  ASSERT_EQ(doca_eth_rxq_set_type(rxq_, DOCA_ETH_RXQ_TYPE_CYCLIC), DOCA_SUCCESS);
  ASSERT_EQ(doca_eth_rxq_set_pkt_buf(rxq_, mmap_, 0, 4 * 128), DOCA_SUCCESS);
  ASSERT_EQ(doca_ctx_set_datapath_on_gpu(doca_eth_rxq_as_doca_ctx(rxq_), gpu_), DOCA_SUCCESS);
  ASSERT_EQ(doca_ctx_start(doca_eth_rxq_as_doca_ctx(rxq_)), DOCA_SUCCESS);
  ASSERT_EQ(doca_eth_rxq_apply_queue_id(rxq_, 0), DOCA_SUCCESS);
  doca_gpu_eth_rxq* rxq = nullptr;
  ASSERT_EQ(doca_eth_rxq_get_gpu_handle(rxq_, &rxq), DOCA_SUCCESS);
  veth_.write(datagram(7, 100));
  veth_.write(datagram(7, 86));
  const auto frames = frames_of(rxq, 4);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0], datagram(7, 86));
}

TEST_F(EthGpuTest, ThreadsShareASendQueue) {
  const std::uint32_t mkey = key();
  doca_gpu_eth_txq* const txq = send(16);
  constexpr unsigned kThreads = 3;
  constexpr unsigned kEach = 30;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::uint64_t address = place(8 + t, datagram(9, 50, static_cast<std::uint8_t>(t)));
      for (unsigned i = 0; i < kEach; ++i) {
        doca_gpu_dev_eth_ticket_t ticket = 0;
        EXPECT_EQ(doca_gpu_dev_eth_txq_send(txq, address, mkey, 92,
                                            DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY, &ticket),
                  DOCA_SUCCESS);
        EXPECT_LT(ticket, kThreads * kEach);
        std::uint32_t ended = 0;
        EXPECT_EQ(
            doca_gpu_dev_eth_txq_poll_completion(txq, 1, DOCA_GPUNETIO_ETH_WAIT_FLAG_B, &ended),
            DOCA_SUCCESS);
        EXPECT_EQ(ended, 1U);
      }
    });
  }
  std::array<unsigned, kThreads> came{};
  for (unsigned i = 0; i < kThreads * kEach; ++i) {
    const Bytes frame = read();
    EXPECT_EQ(frame.size(), 92U) << i;
    if (frame.size() != 92 || frame[42] >= kThreads) break;
    ++came.at(frame[42]);
  }
  for (std::thread& thread : threads) thread.join();
  for (const unsigned count : came) EXPECT_EQ(count, kEach);
  std::uint32_t ended = 1;
  EXPECT_EQ(doca_gpu_dev_eth_txq_poll_completion(txq, 1, DOCA_GPUNETIO_ETH_WAIT_FLAG_NB, &ended),
            DOCA_SUCCESS);
  EXPECT_EQ(ended, 0U);
}

TEST_F(EthGpuTest, AKernelWritesEntriesItself) {
  const std::uint32_t mkey = key();
  doca_gpu_eth_txq* const txq = send(8);
  EXPECT_EQ(doca_gpu_dev_eth_get_lane_id(), 0U);
  std::uint64_t entry = 0;
  std::uint64_t ends = 0;
  for (int burst = 0; burst < 20; ++burst) {
    for (std::size_t i = 0; i < 4; ++i, ++entry) {
      const Bytes frame = datagram(9, 1 + entry % 1000, static_cast<std::uint8_t>(entry));
      const auto flags =
          i == 3 ? DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY : DOCA_GPUNETIO_ETH_SEND_FLAG_NONE;
      EXPECT_EQ(doca_gpu_dev_eth_txq_wqe_prepare_send(
                    txq, doca_gpu_dev_eth_txq_get_wqe_ptr(txq, entry), entry, place(8 + i, frame),
                    mkey, frame.size(), flags),
                DOCA_SUCCESS);
    }
    EXPECT_EQ(doca_gpu_dev_eth_txq_poll_completion_at(txq, ends, DOCA_GPUNETIO_ETH_WAIT_FLAG_NB),
              DOCA_ERROR_AGAIN);
    doca_gpu_dev_eth_txq_submit(txq, entry);
    ASSERT_EQ(doca_gpu_dev_eth_txq_poll_completion_at(txq, ends++, DOCA_GPUNETIO_ETH_WAIT_FLAG_B),
              DOCA_SUCCESS);
    for (std::uint64_t i = entry - 4; i < entry; ++i) {
      ASSERT_EQ(read(), datagram(9, 1 + i % 1000, static_cast<std::uint8_t>(i)));
    }
  }
}

TEST_F(EthGpuTest, AFrameWaitsForItsTime) {
  const std::uint32_t mkey = key();
  doca_gpu_eth_txq* const txq = send(8, true);
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_REALTIME, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
           static_cast<std::uint64_t>(time.tv_nsec);
  };
  std::uint64_t at = 0;
  ASSERT_EQ(doca_eth_txq_calculate_timestamp(txq_, now() + 100'000'000, &at), DOCA_SUCCESS);
  const std::uint64_t address = place(8, datagram(9, 50));
  ASSERT_EQ(doca_gpu_dev_eth_txq_wait_send(txq, at, address, mkey, 92,
                                           DOCA_GPUNETIO_ETH_SEND_FLAG_NONE, nullptr),
            DOCA_SUCCESS);
  ASSERT_EQ(
      doca_gpu_dev_eth_txq_send(txq, address, mkey, 92, DOCA_GPUNETIO_ETH_SEND_FLAG_NONE, nullptr),
      DOCA_SUCCESS);
  EXPECT_EQ(read().size(), 92U);
  EXPECT_GE(now(), at);
  EXPECT_EQ(read().size(), 92U);
}

TEST_F(EthGpuTest, WithoutTheOffloadNoFrameHasATime) {
  const std::uint32_t mkey = key();
  doca_gpu_eth_txq* const txq = send(8);
  std::uint64_t at = 0;
  EXPECT_EQ(doca_eth_txq_calculate_timestamp(txq_, 1, &at), DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_gpu_dev_eth_txq_wait_send(txq, 1, place(8, datagram(9, 50)), mkey, 92,
                                           DOCA_GPUNETIO_ETH_SEND_FLAG_NONE, nullptr),
            DOCA_ERROR_NOT_SUPPORTED);
  doca_eth_wait_on_time_type mode = DOCA_ETH_WAIT_ON_TIME_TYPE_NONE;
  EXPECT_EQ(doca_eth_txq_cap_get_wait_on_time_offload_supported(doca_dev_as_devinfo(dev_), &mode),
            DOCA_SUCCESS);
  EXPECT_EQ(mode, DOCA_ETH_WAIT_ON_TIME_TYPE_NATIVE);
}

TEST_F(EthGpuTest, InvalidEntriesStopTheQueue) {
  receive(4);  // it keeps the interface open
  const std::uint32_t mkey = key();
  const std::uint64_t address = place(8, datagram(9, 50));
  const auto result_of = [&](std::uint64_t from, std::uint32_t used, std::size_t size,
                             std::uint64_t submitted) {
    doca_gpu_eth_txq* const txq = send(8);
    EXPECT_EQ(
        doca_gpu_dev_eth_txq_wqe_prepare_send(txq, doca_gpu_dev_eth_txq_get_wqe_ptr(txq, 0), 0,
                                              from, used, size, DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY),
        DOCA_SUCCESS);
    doca_gpu_dev_eth_txq_submit(txq, submitted);
    const doca_error_t result =
        doca_gpu_dev_eth_txq_poll_completion_at(txq, 0, DOCA_GPUNETIO_ETH_WAIT_FLAG_B);
    EXPECT_EQ(doca_ctx_stop(doca_eth_txq_as_doca_ctx(txq_)), DOCA_SUCCESS);
    EXPECT_EQ(doca_eth_txq_destroy(std::exchange(txq_, nullptr)), DOCA_SUCCESS);
    return result;
  };
  EXPECT_EQ(result_of(address, mkey, 92, 1), DOCA_SUCCESS);
  EXPECT_EQ(result_of(address, be32toh(mkey), 92, 1),
            DOCA_SUCCESS);  // as an array of buffers has it
  EXPECT_EQ(result_of(address, mkey + 77, 92, 1), DOCA_ERROR_IO_FAILED);
  EXPECT_EQ(result_of(address - memory_.size(), mkey, 92, 1), DOCA_ERROR_IO_FAILED);
  EXPECT_EQ(result_of(address, mkey, 13, 1), DOCA_ERROR_IO_FAILED);
  EXPECT_EQ(result_of(address, mkey, 4000, 1), DOCA_ERROR_IO_FAILED);
  EXPECT_EQ(result_of(address, mkey, 92, 9), DOCA_ERROR_IO_FAILED);
}

TEST_F(EthGpuTest, AKernelThatReleasesTooMuchStopsItsQueue) {
  doca_gpu_eth_rxq* const rxq = receive(4);
  offload_gpu_comch_store(&rxq->words->kernel, 3);
  ASSERT_TRUE(
      support::eventually([&] { return offload_gpu_comch_load(&rxq->words->library) >> 32 != 0; }));
  std::uint64_t first = 0;
  std::uint32_t count = 0;
  EXPECT_EQ(doca_gpu_dev_eth_rxq_recv(rxq, 1, kLong, &first, &count, nullptr),
            DOCA_ERROR_IO_FAILED);
}

TEST_F(EthGpuTest, AProgramMayHaveAThreadThatRings) {
  EXPECT_EQ(doca_eth_txq_create(dev_, 8, &txq_), DOCA_SUCCESS);
  EXPECT_EQ(doca_eth_txq_gpu_cpu_proxy_progress(txq_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_eth_txq_gpu_set_uar_on_cpu(txq_), DOCA_SUCCESS);
  EXPECT_EQ(doca_eth_txq_gpu_cpu_proxy_progress(txq_), DOCA_SUCCESS);
  doca_gpu_eth_txq* of_kernel = nullptr;
  EXPECT_EQ(doca_eth_txq_get_gpu_handle(txq_, &of_kernel), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_eth_txq_get_gpu_handle(nullptr, &of_kernel), DOCA_ERROR_INVALID_VALUE);
}

TEST_F(EthGpuTest, MisuseOfAReceiverIsRefused) {
  ASSERT_EQ(doca_eth_rxq_create(dev_, 4, kPacket, &rxq_), DOCA_SUCCESS);
  EXPECT_EQ(doca_eth_rxq_set_pkt_buf(rxq_, mmap_, 0, kPacket - 1), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_eth_rxq_set_pkt_buf(rxq_, mmap_, memory_.size() - kPacket + 1, kPacket),
            DOCA_ERROR_INVALID_VALUE);
  std::uint32_t bytes = 0;
  EXPECT_EQ(doca_eth_rxq_estimate_packet_buf_size(DOCA_ETH_RXQ_TYPE_MANAGED_MEMPOOL, 0, 0, kPacket,
                                                  4, 0, 0, 0, &bytes),
            DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(
      doca_eth_rxq_estimate_packet_buf_size(DOCA_ETH_RXQ_TYPE_CYCLIC, 0, 0, 0, 4, 0, 0, 0, &bytes),
      DOCA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace offload::doca
