#include <doca_buf_array.h>
#include <doca_comch_consumer.h>
#include <doca_comch_producer.h>
#include <doca_gpunetio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <doca_gpunetio_dev_buf.cuh>
#include <doca_gpunetio_dev_comch.cuh>
#include <string>
#include <thread>
#include <vector>

#include "tests/doca/doca_gpu_fixture.hpp"
#include "tests/support/child_process.hpp"

namespace offload::doca {
namespace {

TEST(DocaGpu, WithoutAGpuItIsNotSupported) {
  ::setenv("CUDA_VISIBLE_DEVICES", "-1", 1);  // before the first call of CUDA
  doca_gpu* gpu = nullptr;
  ASSERT_EQ(doca_gpu_create("ff:1f.7", &gpu), DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(gpu, nullptr);
}

TEST(DocaGpu, AddressesAreChecked) {
  doca_gpu* gpu = nullptr;
  EXPECT_EQ(doca_gpu_create("the first", &gpu), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_gpu_create(nullptr, &gpu), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_gpu_create(kGpu, nullptr), DOCA_ERROR_INVALID_VALUE);
  ::setenv("OFFLOAD_DOCA_GPUS", "17:00.0,mine", 1);
  EXPECT_EQ(doca_gpu_create("18:00.0", &gpu), DOCA_ERROR_INVALID_VALUE);
  ::unsetenv("OFFLOAD_DOCA_GPUS");
  EXPECT_EQ(doca_gpu_destroy(nullptr), DOCA_ERROR_INVALID_VALUE);
}

TEST(DocaGpu, MemoryIsZeroedAndAligned) {
  const HostGpu gpu;
  void* own = nullptr;
  ASSERT_EQ(doca_gpu_mem_alloc(gpu.gpu, 100, 4096, DOCA_GPU_MEM_TYPE_GPU, &own, nullptr),
            DOCA_SUCCESS);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(own) % 4096, 0);
  for (const doca_gpu_mem_type type : {DOCA_GPU_MEM_TYPE_GPU_CPU, DOCA_GPU_MEM_TYPE_CPU_GPU}) {
    void* shared = nullptr;
    void* cpu = nullptr;
    ASSERT_EQ(doca_gpu_mem_alloc(gpu.gpu, 100, 0, type, &shared, &cpu), DOCA_SUCCESS);
    ASSERT_NE(cpu, nullptr);
    const auto* const bytes = static_cast<const char*>(cpu);
    EXPECT_EQ(std::count(bytes, bytes + 100, 0), 100);
    EXPECT_EQ(doca_gpu_mem_free(gpu.gpu, shared), DOCA_SUCCESS);
    EXPECT_EQ(doca_gpu_mem_alloc(gpu.gpu, 100, 0, type, &shared, nullptr),
              DOCA_ERROR_INVALID_VALUE);
  }
  void* to = nullptr;
  EXPECT_EQ(doca_gpu_mem_alloc(gpu.gpu, 0, 0, DOCA_GPU_MEM_TYPE_GPU, &to, nullptr),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_gpu_mem_alloc(gpu.gpu, 1, 3, DOCA_GPU_MEM_TYPE_GPU, &to, nullptr),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_gpu_mem_free(gpu.gpu, own), DOCA_SUCCESS);
  EXPECT_EQ(doca_gpu_mem_free(gpu.gpu, own), DOCA_ERROR_NOT_FOUND);
}

TEST(DocaGpu, MemoryThatIsNotFreedIsFreedWithIt) {
  const HostGpu gpu;  // its end is checked
  void* memory = nullptr;
  void* cpu = nullptr;
  EXPECT_EQ(doca_gpu_mem_alloc(gpu.gpu, 100, 4096, DOCA_GPU_MEM_TYPE_GPU, &memory, nullptr),
            DOCA_SUCCESS);
  EXPECT_EQ(doca_gpu_mem_alloc(gpu.gpu, 100, 0, DOCA_GPU_MEM_TYPE_GPU_CPU, &memory, &cpu),
            DOCA_SUCCESS);
}

TEST_F(DocaGpuTest, AnArrayUsesItsGpu) {
  make_array();
  EXPECT_EQ(doca_gpu_destroy(gpu_.gpu), DOCA_ERROR_IN_USE);
}

TEST_F(DocaGpuTest, AKernelFindsTheBuffersOfAnArray) {
  start_all();
  for (std::size_t i = 0; i < kCount; ++i) {
    doca_gpu_buf* buf = nullptr;
    std::uintptr_t address = 0;
    ASSERT_EQ(doca_gpu_dev_buf_get_buf(own_array_, i, &buf), DOCA_SUCCESS);
    ASSERT_EQ(doca_gpu_dev_buf_get_addr(buf, &address), DOCA_SUCCESS);
    EXPECT_EQ(address, reinterpret_cast<std::uintptr_t>(&memory_.bytes[i * kSize]));
  }
  doca_gpu_buf* none = nullptr;
  EXPECT_EQ(doca_gpu_dev_buf_get_buf(own_array_, kCount, &none), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_arr_start(array_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_buf_arr_set_params(array_, memory_.mmap, kSize, 0), DOCA_ERROR_BAD_STATE);
  ASSERT_EQ(doca_buf_arr_stop(array_), DOCA_SUCCESS);
  EXPECT_EQ(doca_buf_arr_get_gpu_handle(array_, &own_array_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_buf_arr_stop(array_), DOCA_ERROR_BAD_STATE);
  // One byte too far, also by an overflow.
  ASSERT_EQ(doca_buf_arr_set_params(array_, memory_.mmap, kSize, 1), DOCA_SUCCESS);
  EXPECT_EQ(doca_buf_arr_start(array_), DOCA_ERROR_INVALID_VALUE);
  ASSERT_EQ(doca_buf_arr_set_params(array_, memory_.mmap, 1, kSize * kCount + 1), DOCA_SUCCESS);
  EXPECT_EQ(doca_buf_arr_start(array_), DOCA_ERROR_INVALID_VALUE);
  ASSERT_EQ(doca_buf_arr_set_params(array_, memory_.mmap, SIZE_MAX / 2 + 1, 0), DOCA_SUCCESS);
  EXPECT_EQ(doca_buf_arr_start(array_), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_buf_arr_create(0, &array_), DOCA_ERROR_INVALID_VALUE);
}

TEST_F(DocaGpuTest, AKernelReversesMessages) {
  start_all();
  std::atomic<int> unexpected{0};
  std::string immediates;
  std::jthread kernel([&](const std::stop_token& stop) {  // also an ASSERT stops it
    for (std::size_t i = 0; i < kCount; ++i) {
      unexpected += doca_dev_gpu_comch_consumer_post_recv(own_consumer_, mkey_,
                                                          address_ + i * kSize, kSize) != 0;
    }
    unexpected += doca_dev_gpu_comch_consumer_post_recv(own_consumer_, mkey_, address_, kSize) !=
                  DOCA_ERROR_AGAIN;
    while (!stop.stop_requested()) {
      std::uint32_t mkey = 0;
      std::uint32_t length = 0;
      std::uintptr_t address = 0;
      std::uint8_t* immediate = nullptr;
      std::uint32_t immediate_length = 32;
      doca_error_t status =
          doca_dev_gpu_comch_consumer_recv_wait(own_consumer_, &mkey, &address, &length, &immediate,
                                                &immediate_length, DOCA_GPU_COMCH_WAIT_FLAG_NB);
      if (status == DOCA_ERROR_AGAIN) {
        std::this_thread::yield();
        continue;
      }
      char* const bytes = bytes_at(address);
      std::reverse(bytes, bytes + length);
      immediates.append(reinterpret_cast<const char*>(immediate), immediate_length);
      unexpected +=
          doca_dev_gpu_comch_producer_send(own_producer_, mkey, address, length, immediate,
                                           immediate_length, id_, address) != 0;
      std::uint64_t sent = 0;
      do {
        status =
            doca_dev_gpu_comch_producer_poll(own_producer_, &sent, DOCA_GPU_COMCH_WAIT_FLAG_NB);
      } while (status == DOCA_ERROR_AGAIN && !stop.stop_requested());
      if (status == DOCA_ERROR_AGAIN) break;  // the test is over
      unexpected += status != DOCA_SUCCESS || sent != address;
      unexpected += doca_dev_gpu_comch_consumer_post_recv(own_consumer_, mkey, address, kSize) != 0;
    }
  });
  for (std::size_t i = 0; i < 50; ++i) {
    std::string text(i == 0 ? 0 : (i * 97) % kSize, 'x');
    for (std::size_t j = 0; j < text.size(); ++j) text[j] = static_cast<char>('a' + (i + j) % 26);
    ASSERT_EQ(post(to_.empty(0, kSize)), DOCA_SUCCESS);
    doca_error_t result = DOCA_ERROR_AGAIN;
    ASSERT_TRUE(run_until([&] {
      if (result == DOCA_ERROR_AGAIN) result = send_to_kernel(text, "i" + std::to_string(i % 10));
      return result != DOCA_ERROR_AGAIN && receiver_.texts.size() == i + 1;
    })) << i;
    ASSERT_EQ(result, DOCA_SUCCESS);
    EXPECT_EQ(receiver_.texts[i], std::string(text.rbegin(), text.rend()));
    EXPECT_EQ(receiver_.immediates[i], "i" + std::to_string(i % 10));
  }
  std::uint32_t producer = 0;
  EXPECT_EQ(doca_comch_producer_get_id(kernel_producer_, &producer), DOCA_SUCCESS);
  EXPECT_EQ(receiver_.producers.back(), producer);
  kernel.request_stop();
  kernel.join();
  EXPECT_EQ(unexpected, 0);
  EXPECT_EQ(immediates.substr(0, 6), "i0i1i2");
}

TEST_F(DocaGpuTest, AStopEndsTheWaitsOfAKernel) {
  start_all();
  doca_error_t received = DOCA_SUCCESS;
  doca_error_t polled = DOCA_SUCCESS;
  std::atomic<bool> done{false};
  std::thread kernel([&] {
    std::uint32_t mkey = 0;
    std::uint32_t length = 0;
    std::uintptr_t address = 0;
    std::uint64_t id = 0;
    received = doca_dev_gpu_comch_consumer_recv_wait(own_consumer_, &mkey, &address, &length,
                                                     nullptr, nullptr, DOCA_GPU_COMCH_WAIT_FLAG_B);
    polled = doca_dev_gpu_comch_producer_poll(own_producer_, &id, DOCA_GPU_COMCH_WAIT_FLAG_B);
    done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  end_of(kernel_consumer_end_);
  end_of(kernel_producer_end_);
  join(kernel, done);
  EXPECT_EQ(received, DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(polled, DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_dev_gpu_comch_consumer_post_recv(own_consumer_, mkey_, address_, kSize),
            DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_dev_gpu_comch_producer_send(own_producer_, mkey_, address_, 1, nullptr, 0, id_, 0),
            DOCA_ERROR_BAD_STATE);
}

TEST_F(DocaGpuTest, TheEndOfThePeerEndsTheWaitsOfAKernel) {
  start_all();
  EXPECT_EQ(doca_comch_server_disconnect(server_, server_side_.connection), DOCA_SUCCESS);
  EXPECT_EQ(error_of_kernel(), DOCA_ERROR_IO_FAILED);
  EXPECT_TRUE(run_until([&] { return kernel_consumer_end_.state() == DOCA_CTX_STATE_IDLE; }));
}

TEST_F(DocaGpuTest, WithTheDataPathOnAGpuThereAreNoTasks) {
  start_all();
  doca_comch_consumer_task_post_recv* receive = nullptr;
  EXPECT_EQ(doca_comch_consumer_task_post_recv_alloc_init(kernel_consumer_, nullptr, &receive),
            DOCA_ERROR_NOT_SUPPORTED);
  doca_comch_producer_task_send* sent = nullptr;
  std::uint8_t immediate = 0;
  EXPECT_EQ(doca_comch_producer_task_send_alloc_init(kernel_producer_, nullptr, &immediate, 1, id_,
                                                     &sent),
            DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_ctx_set_datapath_on_gpu(kernel_consumer_end_.ctx, gpu_.gpu), DOCA_ERROR_BAD_STATE);
  doca_comch_gpu_consumer* none = nullptr;
  EXPECT_EQ(doca_comch_consumer_get_gpu_handle(consumer_, &none), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_gpu_destroy(gpu_.gpu), DOCA_ERROR_IN_USE);
}

TEST_F(DocaGpuTest, AnMmapStaysWhileAKernelHasPostedItsBuffers) {
  start_all();
  ASSERT_EQ(doca_dev_gpu_comch_consumer_post_recv(own_consumer_, mkey_, address_, kSize),
            DOCA_SUCCESS);
  std::uint32_t count = 0;
  EXPECT_TRUE(run_until([&] {
    EXPECT_EQ(doca_mmap_get_num_bufs(memory_.mmap, &count), DOCA_SUCCESS);
    return count == 1;
  }));
  EXPECT_EQ(doca_mmap_stop(memory_.mmap), DOCA_ERROR_NOT_PERMITTED);
  end_of(kernel_consumer_end_);
  EXPECT_EQ(doca_mmap_stop(memory_.mmap), DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_start(memory_.mmap), DOCA_SUCCESS);
}

class DocaGpuFaultTest : public DocaGpuTest, public testing::WithParamInterface<int> {
 protected:
  /// Writes `count` requests as a kernel without the header would.
  static void write(offload_gpu_comch_queue& queue, offload_gpu_comch_request request,
                    std::uint32_t count = 1) {
    // The claim of too many is the only fault.
    for (std::uint32_t i = 0; i < std::min(count, queue.mask + 1); ++i) queue.requests[i] = request;
    queue.requested += count;
    offload_gpu_comch_store(&queue.words->requests, queue.requested);
  }
  offload_gpu_comch_request valid(std::size_t offset, std::size_t length) const {
    offload_gpu_comch_request request{};
    request.address = address_ + offset;
    request.mkey = mkey_;
    request.length = static_cast<std::uint32_t>(length);
    request.consumer = id_;
    return request;
  }
};

TEST_P(DocaGpuFaultTest, WhatAKernelWritesIsChecked) {
  start_all();
  offload_gpu_comch_queue& posts = own_consumer_->queue;
  offload_gpu_comch_queue& sends = own_producer_->queue;
  offload_gpu_comch_request request = valid(0, kSize * kCount);
  const std::uint32_t from_key = key_of(from_.mmap);
  switch (GetParam()) {
    case 0: write(posts, valid(0, kSize * kCount + 1)); break;
    case 1: write(posts, valid(kSize * kCount + 1, 0)); break;
    case 2: --request.address, write(posts, request); break;
    case 3: ++request.mkey, write(posts, request); break;
    case 4: write(posts, request, posts.mask + 2); break;
    case 5: write(posts, request, UINT32_MAX); break;
    case 6: write(sends, valid(kSize * kCount, 1)); break;
    case 7: request.mkey = 0, write(sends, request); break;
    case 8: request.consumer = 99, write(sends, request); break;
    case 9: request.immediate_length = 33, write(sends, request); break;
    case 10: write(sends, request, sends.mask + 2); break;
    case 11: request.address = UINT64_MAX, write(sends, request); break;
    case 12:  // of another mmap
      request = valid(0, 1);
      request.address = reinterpret_cast<std::uintptr_t>(from_.bytes.data());
      request.mkey = from_key;
      write(posts, request);
      break;
    default: FAIL();
  }
  EXPECT_EQ(error_of_kernel(), DOCA_ERROR_IO_FAILED);
  const End& end = GetParam() < 6 || GetParam() == 12 ? kernel_consumer_end_ : kernel_producer_end_;
  EXPECT_TRUE(run_until([&] { return end.state() == DOCA_CTX_STATE_IDLE; }));
}

INSTANTIATE_TEST_SUITE_P(All, DocaGpuFaultTest, testing::Range(0, 13));

TEST_F(DocaGpuTest, ItTakesTheWholeOfItsMemory) {
  start_all();
  ASSERT_EQ(doca_dev_gpu_comch_consumer_post_recv(own_consumer_, mkey_, address_, kSize * kCount),
            DOCA_SUCCESS);
  const std::string text(kSize * kCount, 'y');
  doca_error_t result = DOCA_ERROR_AGAIN;
  std::uint32_t mkey = 0;
  std::uint32_t length = 0;
  std::uintptr_t address = 0;
  ASSERT_TRUE(run_until([&] {
    if (result == DOCA_ERROR_AGAIN) result = send_to_kernel(text);
    return result == DOCA_SUCCESS && server_producer_end_.results.size() == 1;
  }));
  doca_error_t received = DOCA_ERROR_AGAIN;
  ASSERT_TRUE(run_until([&] {
    if (received == DOCA_ERROR_AGAIN) {
      received = doca_dev_gpu_comch_consumer_recv_wait(
          own_consumer_, &mkey, &address, &length, nullptr, nullptr, DOCA_GPU_COMCH_WAIT_FLAG_NB);
    }
    return received != DOCA_ERROR_AGAIN;
  }));
  ASSERT_EQ(received, DOCA_SUCCESS);
  EXPECT_EQ(length, text.size());
  EXPECT_EQ(mkey, mkey_);
  EXPECT_EQ(std::string(memory_.bytes.begin(), memory_.bytes.end()), text);
}

TEST_F(DocaGpuTest, AStopOfAStartEndsTheWaitsOfAKernel) {
  connect();
  kernel_consumer_ = make_kernel_consumer();
  ASSERT_EQ(doca_ctx_start(kernel_consumer_end_.ctx), DOCA_ERROR_IN_PROGRESS);
  ASSERT_EQ(doca_comch_consumer_get_gpu_handle(kernel_consumer_, &own_consumer_), DOCA_SUCCESS);
  doca_error_t received = DOCA_SUCCESS;
  std::atomic<bool> done{false};
  std::thread kernel([&] {
    std::uint32_t mkey = 0;
    std::uint32_t length = 0;
    std::uintptr_t address = 0;
    received = doca_dev_gpu_comch_consumer_recv_wait(own_consumer_, &mkey, &address, &length,
                                                     nullptr, nullptr, DOCA_GPU_COMCH_WAIT_FLAG_B);
    done = true;
  });
  end_of(kernel_consumer_end_);
  join(kernel, done);
  EXPECT_EQ(received, DOCA_ERROR_BAD_STATE);
}

/// The side of the GPU is another process.
class DocaGpuProcessTest : public DocaGpuTest {
 protected:
  static constexpr std::size_t kMessages = 100;

  static std::string text_of(std::size_t i) {
    std::string text((i * 131) % kSize + 1, 'x');
    for (std::size_t j = 0; j < text.size(); ++j) text[j] = static_cast<char>('a' + (i + j) % 26);
    return text;
  }
  /// The engines of the fixture are the parent's, too: they are not used.
  int run_kernel_process() {
    Side own;
    doca_comch_client* const client = make_client(own, kName);
    if (doca_ctx_start(own.ctx) != DOCA_ERROR_IN_PROGRESS) return 1;
    if (!turn_until(own, [&] { return own.state() == DOCA_CTX_STATE_RUNNING; })) return 2;
    EXPECT_EQ(doca_comch_client_get_connection(client, &client_side_.connection), DOCA_SUCCESS);
    kernel_consumer_ = make_kernel_consumer();
    kernel_producer_ = make_kernel_producer();
    EXPECT_EQ(doca_ctx_start(kernel_consumer_end_.ctx), DOCA_ERROR_IN_PROGRESS);
    EXPECT_EQ(doca_ctx_start(kernel_producer_end_.ctx), DOCA_SUCCESS);
    if (!turn_until(own, [&] {
          return kernel_consumer_end_.state() == DOCA_CTX_STATE_RUNNING &&
                 own.new_consumers.size() == 1;
        })) {
      return 3;
    }
    EXPECT_EQ(doca_comch_consumer_get_gpu_handle(kernel_consumer_, &own_consumer_), DOCA_SUCCESS);
    EXPECT_EQ(doca_comch_producer_get_gpu_handle(kernel_producer_, &own_producer_), DOCA_SUCCESS);
    make_array();
    // No turns from here on: the library's thread moves the messages.
    const std::uint32_t peer = own.new_consumers[0];
    doca_error_t status =
        doca_dev_gpu_comch_consumer_post_recv(own_consumer_, mkey_, address_, kSize);
    for (std::size_t i = 0; i < kMessages && status == DOCA_SUCCESS; ++i) {
      std::uint32_t mkey = 0;
      std::uint32_t length = 0;
      std::uintptr_t address = 0;
      std::uint64_t sent = 0;
      status = doca_dev_gpu_comch_consumer_recv_wait(own_consumer_, &mkey, &address, &length,
                                                     nullptr, nullptr, DOCA_GPU_COMCH_WAIT_FLAG_B);
      if (status != DOCA_SUCCESS) break;
      char* const bytes = bytes_at(address);
      std::reverse(bytes, bytes + length);
      status = doca_dev_gpu_comch_producer_send(own_producer_, mkey, address, length, nullptr, 0,
                                                peer, i);
      if (status != DOCA_SUCCESS) break;
      status = doca_dev_gpu_comch_producer_poll(own_producer_, &sent, DOCA_GPU_COMCH_WAIT_FLAG_B);
      if (status != DOCA_SUCCESS || sent != i) return 4;
      status = doca_dev_gpu_comch_consumer_post_recv(own_consumer_, mkey, address, kSize);
    }
    if (status != DOCA_SUCCESS) return 5;
    // Until the parent stops: its end ends the wait.
    std::uint32_t mkey = 0;
    std::uint32_t length = 0;
    std::uintptr_t address = 0;
    status = doca_dev_gpu_comch_consumer_recv_wait(own_consumer_, &mkey, &address, &length, nullptr,
                                                   nullptr, DOCA_GPU_COMCH_WAIT_FLAG_B);
    if (status != DOCA_ERROR_IO_FAILED) return 6;
    ::_exit(testing::Test::HasFailure() ? 7 : 0);
  }
};

TEST_F(DocaGpuProcessTest, AKernelOfAnotherProcessReversesMessages) {
  ASSERT_EQ(doca_ctx_start(server_side_.ctx), DOCA_SUCCESS);
  support::ChildProcess child([&](int) { return run_kernel_process(); }, std::chrono::seconds(60));
  ASSERT_TRUE(run_until([&] { return server_side_.connects == 1; }));
  consumer_ = make_consumer(receiver_, server_side_.connection);
  producer_ = make_producer(sender_, server_side_.connection);
  ASSERT_EQ(doca_ctx_start(receiver_.ctx), DOCA_ERROR_IN_PROGRESS);
  ASSERT_EQ(doca_ctx_start(sender_.ctx), DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] {
    return receiver_.state() == DOCA_CTX_STATE_RUNNING && server_side_.new_consumers.size() == 1;
  }));
  id_ = server_side_.new_consumers[0];
  for (std::size_t i = 0; i < kMessages; ++i) {
    const std::string text = text_of(i);
    ASSERT_EQ(post(to_.empty(0, kSize)), DOCA_SUCCESS);
    send_text(text);
    ASSERT_TRUE(run_until([&] { return receiver_.texts.size() == i + 1; })) << i;
    ASSERT_EQ(receiver_.texts[i], std::string(text.rbegin(), text.rend())) << i;
  }
  end_of(sender_);
  end_of(receiver_);
  stop(server_side_);
  const int status = child.wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace offload::doca
