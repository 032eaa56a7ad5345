// The torn-packet hunt, once for each form of packet access: included by a test that has chosen
// one. Everything is in the unit's own unnamed namespace, as the forms differ behind equal names.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "kernels/channel_packets.hpp"
#include "kernels/memory_order.hpp"

namespace offload::kernels {
namespace {

using namespace std::chrono_literals;

/// Bounds of each side: it ends at the first that is reached. The GPU's time is its global timer's.
constexpr std::uint32_t kMostWrites = 50'000'000;
constexpr auto kTime = 500ms;
constexpr std::uint64_t kTimeNs = std::chrono::nanoseconds(kTime).count();
/// One packet for each lane of a warp, side by side, as in a slot.
constexpr std::uint32_t kPackets = 32;

/// The observations of a reader. The GPU writes them; the host reads them after the kernel has
/// ended.
struct Seen {
  std::uint32_t torn;     ///< packets whose data is an older flag's, or on a GPU another's
  std::uint32_t changes;  ///< of the flag from one look to the next
};

/// Returns a packet all of whose words follow from its flag.
__host__ __device__ inline Packet packet_of(std::uint32_t flag) {
  return {{flag * 3, ~flag, flag * 7}, flag};
}

__host__ __device__ inline void look(const Packet* from, std::uint32_t& last, Seen& seen) {
  const Packet packet = load_packet(from);
  const std::uint32_t low = ~packet.data[1];  // the flag that the lower half was stored with
#if defined(__CUDA_ARCH__)
  const bool is_older = low != packet.flag;
#else
  const bool is_older = low < packet.flag;  // a CPU loads the half with the flag first
#endif
  seen.torn +=
      is_older || packet.data[0] != low * 3 || packet.data[2] != packet_of(packet.flag).data[2];
  seen.changes += packet.flag != last;
  last = packet.flag;
}

__device__ inline std::uint64_t now_ns() {
  std::uint64_t nanoseconds = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds)::"memory");
  return nanoseconds;
}

/// Each lane writes its own packet over and over.
__global__ void write_packets(Packet* packets) {
  const std::uint64_t end = now_ns() + kTimeNs;
  for (std::uint32_t flag = 1; flag != kMostWrites; ++flag) {
    store_packet(packets + threadIdx.x, packet_of(flag));
    if (flag % 1024 == 0 && now_ns() > end) break;
  }
}

/// Each lane reads its own packet over and over.
__global__ void read_packets(const Packet* packets, Seen* results) {
  const std::uint64_t end = now_ns() + kTimeNs;
  Seen seen{};
  std::uint32_t last = 0;
  for (std::uint32_t round = 1; round != kMostWrites; ++round) {
    look(packets + threadIdx.x, last, seen);
    if (round % 1024 == 0 && now_ns() > end) break;
  }
  results[threadIdx.x] = seen;
}

/// Memory of the host that all GPUs see, or of one GPU.
template <class T>
class Shared {
 public:
  explicit Shared(bool on_gpu = false) : on_gpu_(on_gpu) {
    void* data = nullptr;
    const auto status = on_gpu ? cudaMalloc(&data, kPackets * sizeof(T))
                               : cudaHostAlloc(&data, kPackets * sizeof(T), cudaHostAllocPortable);
    EXPECT_EQ(status, cudaSuccess);
    // All of its data fits flag 0.
    T fresh[kPackets]{};
    if constexpr (sizeof(T) == sizeof(Packet)) {
      for (auto& packet : fresh) packet = packet_of(0);
    }
    EXPECT_EQ(cudaMemcpy(data, fresh, sizeof fresh, cudaMemcpyDefault), cudaSuccess);
    data_ = static_cast<T*>(data);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { on_gpu_ ? cudaFree(data_) : cudaFreeHost(data_); }
  T* get() const { return data_; }

 private:
  bool on_gpu_;
  T* data_ = nullptr;
};

class PACKET_STRESS_SUITE : public testing::Test {
 protected:
  void SetUp() override {
    const auto status = cudaGetDeviceCount(&gpus_);
    if (status != cudaSuccess || gpus_ == 0) {
      GTEST_SKIP() << "no GPU: " << cudaGetErrorString(status);
    }
    use(0);
  }
  /// Selects `gpu` for this thread. Loads both kernels there: otherwise the first launch of one
  /// would wait for the other to end.
  static void use(int gpu) {
    ASSERT_EQ(cudaSetDevice(gpu), cudaSuccess);
    cudaFuncAttributes attributes{};
    ASSERT_EQ(cudaFuncGetAttributes(&attributes, write_packets), cudaSuccess);
    ASSERT_EQ(cudaFuncGetAttributes(&attributes, read_packets), cudaSuccess);
  }
  static void wait_for(int gpu) {
    use(gpu);
    const auto status = cudaDeviceSynchronize();
    ASSERT_EQ(status, cudaSuccess) << cudaGetErrorString(status);
  }
  static void expect_whole(const Seen* seen) {
    for (std::uint32_t lane = 0; lane < kPackets; ++lane) {
      EXPECT_EQ(seen[lane].torn, 0U) << "lane " << lane;
      EXPECT_GT(seen[lane].changes, 1U) << "lane " << lane;
    }
  }
  /// One warp writes on GPU `writer`, another reads on GPU `reader`.
  static void expect_whole_between(int writer, int reader, Packet* packets) {
    const Shared<Seen> seen;
    cudaStream_t streams[2] = {};
    use(reader);
    ASSERT_EQ(cudaStreamCreateWithFlags(&streams[0], cudaStreamNonBlocking), cudaSuccess);
    read_packets<<<1, kPackets, 0, streams[0]>>>(packets, seen.get());
    ASSERT_EQ(cudaGetLastError(), cudaSuccess);
    use(writer);
    ASSERT_EQ(cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking), cudaSuccess);
    write_packets<<<1, kPackets, 0, streams[1]>>>(packets);
    ASSERT_EQ(cudaGetLastError(), cudaSuccess);
    wait_for(writer);
    wait_for(reader);
    for (const auto stream : streams) EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    expect_whole(seen.get());
  }

  int gpus_ = 0;
};

TEST_F(PACKET_STRESS_SUITE, ACpuWritesAndAGpuReads) {
  const Shared<Packet> packets;
  const Shared<Seen> seen;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint32_t flag = 1; !stop.load(std::memory_order_relaxed); ++flag) {
      for (std::uint32_t i = 0; i < kPackets; ++i) store_packet(packets.get() + i, packet_of(flag));
    }
  });
  read_packets<<<1, kPackets>>>(packets.get(), seen.get());
  const auto launched = cudaGetLastError();
  const auto ended = cudaDeviceSynchronize();
  stop = true;
  writer.join();
  ASSERT_EQ(launched, cudaSuccess);
  ASSERT_EQ(ended, cudaSuccess) << cudaGetErrorString(ended);
  expect_whole(seen.get());
}

TEST_F(PACKET_STRESS_SUITE, AGpuWritesAndACpuReads) {
  const Shared<Packet> packets;
  Seen seen[kPackets]{};
  std::uint32_t last[kPackets]{};
  write_packets<<<1, kPackets>>>(packets.get());
  ASSERT_EQ(cudaGetLastError(), cudaSuccess);
  const auto end = std::chrono::steady_clock::now() + kTime;
  while (std::chrono::steady_clock::now() < end) {
    for (std::uint32_t i = 0; i < kPackets; ++i) look(packets.get() + i, last[i], seen[i]);
  }
  wait_for(0);
  expect_whole(seen);
}

TEST_F(PACKET_STRESS_SUITE, TwoWarpsOfAGpuThroughItsMemory) {
  const Shared<Packet> packets(true);
  expect_whole_between(0, 0, packets.get());
}

TEST_F(PACKET_STRESS_SUITE, TwoGpusThroughMemoryOfTheHost) {
  if (gpus_ < 2) GTEST_SKIP() << "there is one GPU";
  const Shared<Packet> packets;
  expect_whole_between(0, 1, packets.get());
}

TEST_F(PACKET_STRESS_SUITE, TwoGpusThroughMemoryOfTheReader) {
  int reaches = 0;
  if (gpus_ < 2) GTEST_SKIP() << "there is one GPU";
  ASSERT_EQ(cudaDeviceCanAccessPeer(&reaches, 0, 1), cudaSuccess);
  if (reaches == 0) GTEST_SKIP() << "GPU 0 does not reach the memory of GPU 1";
  const auto enabled = cudaDeviceEnablePeerAccess(1, 0);
  ASSERT_TRUE(enabled == cudaSuccess || enabled == cudaErrorPeerAccessAlreadyEnabled);
  cudaGetLastError();
  use(1);
  const Shared<Packet> packets(true);
  expect_whole_between(0, 1, packets.get());
}

}  // namespace
}  // namespace offload::kernels
