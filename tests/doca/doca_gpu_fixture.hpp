#pragma once

#include <doca_buf_array.h>
#include <doca_comch_consumer.h>
#include <doca_comch_producer.h>
#include <doca_gpunetio.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <doca_gpunetio_dev_buf.cuh>
#include <doca_gpunetio_dev_comch.cuh>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "tests/doca/comch/comch_data_fixture.hpp"
#include "tests/support/eventually.hpp"

namespace offload::doca {

inline constexpr const char* kGpu = "17:00.0";

/// Returns the bytes of a message, whose address a kernel gets as a number.
inline char* bytes_at(std::uint64_t address) {
  return reinterpret_cast<char*>(address);  // NOLINT(performance-no-int-to-ptr)
}

/// A host GPU: threads of this process are its kernels.
struct HostGpu {
  HostGpu() {
    ::setenv("OFFLOAD_DOCA_GPUS", "16:00.0,17:00.0", 1);
    EXPECT_EQ(doca_gpu_create(kGpu, &gpu), DOCA_SUCCESS);
    ::unsetenv("OFFLOAD_DOCA_GPUS");
  }
  HostGpu& operator=(HostGpu&&) = delete;
  ~HostGpu() { EXPECT_EQ(doca_gpu_destroy(gpu), DOCA_SUCCESS); }
  doca_gpu* gpu = nullptr;
};

/// A connection; the client's consumer and producer are for a kernel.
class DocaGpuTest : public ComchDataTest {
 protected:
  static constexpr std::size_t kSize = 1000;  // of a buffer of the kernel
  static constexpr std::size_t kCount = 4;

  ~DocaGpuTest() override {
    if (array_ != nullptr) {
      EXPECT_EQ(doca_buf_arr_destroy(array_), DOCA_SUCCESS);
    }
    // Before the GPU and the memory.
    for (const auto& [end, consumer] : consumers_) {
      end_of(*end);
      EXPECT_EQ(doca_comch_consumer_destroy(consumer), DOCA_SUCCESS);
    }
    for (const auto& [end, producer] : producers_) {
      end_of(*end);
      EXPECT_EQ(doca_comch_producer_destroy(producer), DOCA_SUCCESS);
    }
    consumers_.clear();
    producers_.clear();
    others_ = nullptr;
  }

  doca_comch_consumer* make_kernel_consumer() {
    doca_comch_consumer* consumer = nullptr;
    EXPECT_EQ(doca_comch_consumer_create(client_side_.connection, memory_.mmap, &consumer),
              DOCA_SUCCESS);
    doca_ctx* const ctx = doca_comch_consumer_as_ctx(consumer);
    EXPECT_EQ(doca_ctx_set_datapath_on_gpu(ctx, gpu_.gpu), DOCA_SUCCESS);
    kernel_consumer_end_.configure(ctx);
    EXPECT_EQ(
        doca_comch_consumer_task_post_recv_set_conf(consumer, on_received, on_received, kCount),
        DOCA_SUCCESS);
    consumers_.emplace_back(&kernel_consumer_end_, consumer);
    return consumer;
  }
  doca_comch_producer* make_kernel_producer() {
    doca_comch_producer* producer = nullptr;
    EXPECT_EQ(doca_comch_producer_create(client_side_.connection, &producer), DOCA_SUCCESS);
    doca_ctx* const ctx = doca_comch_producer_as_ctx(producer);
    EXPECT_EQ(doca_ctx_set_datapath_on_gpu(ctx, gpu_.gpu), DOCA_SUCCESS);
    kernel_producer_end_.configure(ctx);
    EXPECT_EQ(doca_comch_producer_task_send_set_conf(producer, on_data_sent, on_data_sent, kCount),
              DOCA_SUCCESS);
    producers_.emplace_back(&kernel_producer_end_, producer);
    return producer;
  }
  /// Connects, and starts producer and consumer of the server, and those of the kernel.
  void start_all() {
    start(true);  // consumer_ is the server's, producer_ the client's, which no test here uses
    server_end_producer_ = make_producer(server_producer_end_, server_side_.connection);
    ASSERT_EQ(doca_ctx_start(server_producer_end_.ctx), DOCA_SUCCESS);
    kernel_consumer_ = make_kernel_consumer();
    kernel_producer_ = make_kernel_producer();
    ASSERT_EQ(doca_comch_consumer_get_gpu_handle(kernel_consumer_, &own_consumer_),
              DOCA_ERROR_BAD_STATE);
    ASSERT_EQ(doca_ctx_start(kernel_consumer_end_.ctx), DOCA_ERROR_IN_PROGRESS);
    ASSERT_EQ(doca_ctx_start(kernel_producer_end_.ctx), DOCA_SUCCESS);
    ASSERT_TRUE(run_until([&] {
      return kernel_consumer_end_.state() == DOCA_CTX_STATE_RUNNING &&
             server_side_.new_consumers.size() == 1;
    }));
    ASSERT_EQ(doca_comch_consumer_get_gpu_handle(kernel_consumer_, &own_consumer_), DOCA_SUCCESS);
    ASSERT_EQ(doca_comch_producer_get_gpu_handle(kernel_producer_, &own_producer_), DOCA_SUCCESS);
    ASSERT_EQ(doca_comch_consumer_get_id(kernel_consumer_, &kernel_id_), DOCA_SUCCESS);
    make_array();
  }
  void make_array() {
    ASSERT_EQ(doca_buf_arr_create(kCount, &array_), DOCA_SUCCESS);
    ASSERT_EQ(doca_buf_arr_set_target_gpu(array_, gpu_.gpu), DOCA_SUCCESS);
    ASSERT_EQ(doca_buf_arr_set_params(array_, memory_.mmap, kSize, 0), DOCA_SUCCESS);
    ASSERT_EQ(doca_buf_arr_start(array_), DOCA_SUCCESS);
    ASSERT_EQ(doca_buf_arr_get_gpu_handle(array_, &own_array_), DOCA_SUCCESS);
    doca_gpu_buf* buf = nullptr;
    ASSERT_EQ(doca_gpu_dev_buf_get_buf(own_array_, 0, &buf), DOCA_SUCCESS);
    ASSERT_EQ(doca_gpu_dev_buf_get_mkey(buf, &mkey_), DOCA_SUCCESS);
    ASSERT_EQ(doca_gpu_dev_buf_get_addr(buf, &address_), DOCA_SUCCESS);
  }
  /// Returns the key by which a kernel names the memory.
  std::uint32_t key_of(doca_mmap* mmap) const {
    doca_buf_arr* array = nullptr;
    doca_gpu_buf_arr* handle = nullptr;
    doca_gpu_buf* buf = nullptr;
    std::uint32_t key = 0;
    EXPECT_EQ(doca_buf_arr_create(1, &array), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_arr_set_target_gpu(array, gpu_.gpu), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_arr_set_params(array, mmap, 1, 0), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_arr_start(array), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_arr_get_gpu_handle(array, &handle), DOCA_SUCCESS);
    EXPECT_EQ(doca_gpu_dev_buf_get_buf(handle, 0, &buf), DOCA_SUCCESS);
    EXPECT_EQ(doca_gpu_dev_buf_get_mkey(buf, &key), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_arr_destroy(array), DOCA_SUCCESS);
    return key;
  }
  doca_error_t send_to_kernel(const std::string& text, const std::string& immediate = "") {
    std::swap(producer_, server_end_producer_);
    std::swap(id_, kernel_id_);
    const doca_error_t result = send(text.empty() ? nullptr : from_.filled(0, text), immediate);
    std::swap(producer_, server_end_producer_);
    std::swap(id_, kernel_id_);
    return result;
  }
  /// Returns the error that the kernel's next call has; DOCA_SUCCESS if none comes.
  doca_error_t error_of_kernel() {
    doca_error_t error = DOCA_SUCCESS;
    run_until([&] {
      std::uint32_t mkey = 0;
      std::uint32_t length = 0;
      std::uintptr_t address = 0;
      std::uint64_t id = 0;
      for (const doca_error_t each :
           {doca_dev_gpu_comch_consumer_recv_wait(own_consumer_, &mkey, &address, &length, nullptr,
                                                  nullptr, DOCA_GPU_COMCH_WAIT_FLAG_NB),
            doca_dev_gpu_comch_producer_poll(own_producer_, &id, DOCA_GPU_COMCH_WAIT_FLAG_NB)}) {
        if (each != DOCA_ERROR_AGAIN && each != DOCA_SUCCESS) error = each;
      }
      return error != DOCA_SUCCESS;
    });
    return error;
  }

  /// Joins a kernel that sets `done` at its end. If it does not, its calls are ended.
  void join(std::thread& kernel, const std::atomic<bool>& done) {
    const bool has_ended = run_until([&] { return done.load(); });
    EXPECT_TRUE(has_ended) << "the kernel still waits";
    if (!has_ended && own_consumer_ != nullptr) end_calls(*own_consumer_->queue.words);
    if (!has_ended && own_producer_ != nullptr) end_calls(*own_producer_->queue.words);
    kernel.join();
  }
  static void end_calls(offload_gpu_comch_words& words) {
    const std::uint64_t events = offload_gpu_comch_load(&words.events) & UINT32_MAX;
    offload_gpu_comch_store(&words.events, std::uint64_t{DOCA_ERROR_BAD_STATE} << 32 | events);
  }
  /// Turns a client of another process, and its ends, until `ready`.
  bool turn_until(Side& own, const std::function<bool()>& ready) {
    return support::eventually(ready, [&] {
      own.turn();
      turn_ends();
    });
  }

  const HostGpu gpu_;
  Memory memory_{host_, kSize* kCount};  // of the kernel
  End kernel_consumer_end_;
  End kernel_producer_end_;
  End server_producer_end_;
  doca_comch_producer* server_end_producer_ = nullptr;
  doca_comch_consumer* kernel_consumer_ = nullptr;
  doca_comch_producer* kernel_producer_ = nullptr;
  doca_comch_gpu_consumer* own_consumer_ = nullptr;
  doca_comch_gpu_producer* own_producer_ = nullptr;
  doca_buf_arr* array_ = nullptr;
  doca_gpu_buf_arr* own_array_ = nullptr;
  std::uint32_t kernel_id_ = 0;
  std::uint32_t mkey_ = 0;
  std::uintptr_t address_ = 0;
};

}  // namespace offload::doca
