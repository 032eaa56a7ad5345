#include <doca_mmap_advise.h>

#include <vector>

#include "tests/doca/dma_fixture.hpp"

namespace offload::doca {
namespace {

using CacheTask = doca_mmap_advise_task_invalidate_cache;

/// A context of two tasks, on the device of the mmap.
class DocaMmapAdviseTest : public MemoryTest {
 protected:
  DocaMmapAdviseTest() {
    EXPECT_EQ(doca_pe_create(&pe_), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_advise_create(dev_, &advise_), DOCA_SUCCESS);
    ctx_ = doca_mmap_advise_as_ctx(advise_);
    EXPECT_EQ(doca_pe_connect_ctx(pe_, ctx_), DOCA_SUCCESS);
    EXPECT_EQ(doca_ctx_set_user_data(ctx_, {.ptr = this}), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_advise_task_invalidate_cache_set_conf(advise_, on_end, on_failure, 2),
              DOCA_SUCCESS);
  }
  ~DocaMmapAdviseTest() override {
    static_cast<void>(doca_ctx_stop(ctx_));
    for (int turns = 0; turns < 5; ++turns) doca_pe_progress(pe_);
    EXPECT_EQ(doca_mmap_advise_destroy(advise_), DOCA_SUCCESS);
    EXPECT_EQ(doca_pe_destroy(pe_), DOCA_SUCCESS);
  }
  CacheTask* task_of(doca_buf* buf) {
    CacheTask* task = nullptr;
    EXPECT_EQ(doca_mmap_advise_task_invalidate_cache_alloc_init(advise_, buf, {.u64 = 7}, &task),
              DOCA_SUCCESS);
    return task;
  }
  static doca_error_t submit(CacheTask* task) {
    return doca_task_submit(doca_mmap_advise_task_invalidate_cache_as_doca_task(task));
  }
  static void on_end(CacheTask* task, doca_data task_data, doca_data ctx_data) {
    static_cast<DocaMmapAdviseTest*>(ctx_data.ptr)->ended_.push_back(task_data.u64);
    doca_task_free(doca_mmap_advise_task_invalidate_cache_as_doca_task(task));
  }
  static void on_failure(CacheTask* task, doca_data, doca_data ctx_data) {
    doca_task* const base = doca_mmap_advise_task_invalidate_cache_as_doca_task(task);
    static_cast<DocaMmapAdviseTest*>(ctx_data.ptr)->failed_.push_back(doca_task_get_status(base));
    doca_task_free(base);
  }

  doca_pe* pe_ = nullptr;
  doca_mmap_advise* advise_ = nullptr;
  doca_ctx* ctx_ = nullptr;
  std::vector<std::uint64_t> ended_;
  std::vector<doca_error_t> failed_;
};

TEST_F(DocaMmapAdviseTest, ATaskEndsInATurnAndHoldsItsBufferUntilThen) {
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  doca_buf* const buf = source(0, 1);
  ASSERT_EQ(submit(task_of(buf)), DOCA_SUCCESS);
  EXPECT_TRUE(ended_.empty());
  std::uint32_t count = 0;
  EXPECT_EQ(doca_buf_dec_refcount(buf, nullptr), DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_get_num_bufs(mmap_, &count), DOCA_SUCCESS);
  EXPECT_EQ(count, 1U) << "the task holds the buffer";
  EXPECT_EQ(doca_pe_progress(pe_), 1);
  EXPECT_EQ(ended_, std::vector<std::uint64_t>{7});
  EXPECT_EQ(doca_mmap_get_num_bufs(mmap_, &count), DOCA_SUCCESS);
  EXPECT_EQ(count, 0U);
}

TEST_F(DocaMmapAdviseTest, AStopFailsWhatWasSubmitted) {
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  doca_buf* const buf = source(0, 1);
  ASSERT_EQ(submit(task_of(buf)), DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_advise_destroy(advise_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_ctx_stop(ctx_), DOCA_ERROR_IN_PROGRESS);
  doca_pe_progress(pe_);
  EXPECT_EQ(failed_, std::vector{DOCA_ERROR_SHUTDOWN});
  EXPECT_EQ(doca_buf_dec_refcount(buf, nullptr), DOCA_SUCCESS);
}

TEST_F(DocaMmapAdviseTest, TasksHaveABufferAndAreConfiguredBeforeTheStart) {
  doca_buf* const buf = source(0, 1);
  doca_buf* const other = source(1, 1);
  CacheTask* task = nullptr;
  EXPECT_EQ(doca_mmap_advise_task_invalidate_cache_alloc_init(advise_, buf, {}, &task),
            DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_mmap_advise_task_invalidate_cache_set_conf(advise_, on_end, on_failure, 0),
            DOCA_ERROR_INVALID_VALUE);
  ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_advise_task_invalidate_cache_set_conf(advise_, on_end, on_failure, 1),
            DOCA_ERROR_BAD_STATE);
  task = task_of(buf);
  CacheTask* const second = task_of(buf);
  CacheTask* third = nullptr;
  EXPECT_EQ(doca_mmap_advise_task_invalidate_cache_alloc_init(advise_, buf, {}, &third),
            DOCA_ERROR_NO_MEMORY);
  EXPECT_EQ(doca_mmap_advise_task_invalidate_cache_get_buf(task), buf);
  doca_mmap_advise_task_invalidate_cache_set_buf(task, nullptr);
  EXPECT_EQ(submit(task), DOCA_ERROR_INVALID_VALUE);
  doca_mmap_advise_task_invalidate_cache_set_buf(task, other);
  EXPECT_EQ(submit(task), DOCA_SUCCESS);
  EXPECT_EQ(submit(second), DOCA_SUCCESS);
  doca_pe_progress(pe_);
  EXPECT_EQ(ended_.size(), 2U);
  EXPECT_EQ(doca_buf_dec_refcount(buf, nullptr), DOCA_SUCCESS);
  EXPECT_EQ(doca_buf_dec_refcount(other, nullptr), DOCA_SUCCESS);
}

TEST_F(DocaMmapAdviseTest, AHostDeviceHasTheTask) {
  const doca_devinfo* const info = doca_dev_as_devinfo(dev_);
  std::uint64_t most = 0;
  EXPECT_EQ(doca_mmap_advise_cap_task_cache_invalidate_is_supported(info), DOCA_SUCCESS);
  EXPECT_EQ(doca_mmap_advise_task_cache_invalidate_get_max_buf_size(info, &most), DOCA_SUCCESS);
  EXPECT_GT(most, std::uint64_t{1} << 40);
  EXPECT_EQ(doca_mmap_advise_cap_task_cache_invalidate_is_supported(nullptr),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_advise_task_cache_invalidate_get_max_buf_size(info, nullptr),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_advise_create(dev_, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_advise_destroy(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_mmap_advise_as_ctx(nullptr), nullptr);
  EXPECT_EQ(doca_mmap_advise_task_invalidate_cache_as_doca_task(nullptr), nullptr);
  EXPECT_EQ(doca_mmap_advise_task_invalidate_cache_get_buf(nullptr), nullptr);
}

}  // namespace
}  // namespace offload::doca
