#include <doca_graph.h>
#include <doca_sync_event.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "tests/doca/dma_fixture.hpp"
#include "tests/support/child_process.hpp"

namespace offload::doca {
namespace {

constexpr std::uint64_t kAll = ~std::uint64_t{0};

/// A device, and an event of it whose publisher is on the other side of PCI.
class DocaSyncEventTest : public testing::Test {
 protected:
  DocaSyncEventTest() : dev_(open_first_device()), event_(make()) {}
  ~DocaSyncEventTest() override {
    if (event_ != nullptr) {
      EXPECT_EQ(doca_sync_event_destroy(event_), DOCA_SUCCESS);
    }
    EXPECT_EQ(doca_dev_close(dev_), DOCA_SUCCESS);
  }

  doca_sync_event* make() {
    doca_sync_event* event = nullptr;
    EXPECT_EQ(doca_sync_event_create(&event), DOCA_SUCCESS);
    EXPECT_EQ(doca_sync_event_add_publisher_location_remote_pci(event), DOCA_SUCCESS);
    EXPECT_EQ(doca_sync_event_add_subscriber_location_cpu(event, dev_), DOCA_SUCCESS);
    return event;
  }
  void start() { ASSERT_EQ(doca_sync_event_start(event_), DOCA_SUCCESS); }
  void stop() { ASSERT_EQ(doca_sync_event_stop(event_), DOCA_SUCCESS); }
  /// An event of the export of event_, which is not started.
  doca_sync_event* import() {
    const std::uint8_t* data = nullptr;
    std::size_t size = 0;
    EXPECT_EQ(doca_sync_event_export_to_remote_pci(event_, dev_, &data, &size), DOCA_SUCCESS);
    doca_sync_event* other = nullptr;
    EXPECT_EQ(doca_sync_event_create_from_export(dev_, data, size, &other), DOCA_SUCCESS);
    return other;
  }
  static std::uint64_t value_of(doca_sync_event* event) {
    std::uint64_t value = 0;
    EXPECT_EQ(doca_sync_event_get(event, &value), DOCA_SUCCESS);
    return value;
  }

  doca_dev* dev_;
  doca_sync_event* event_;
};

TEST_F(DocaSyncEventTest, SetAddAndGet) {
  start();
  EXPECT_EQ(value_of(event_), 0U);
  EXPECT_EQ(doca_sync_event_update_set(event_, 40), DOCA_SUCCESS);
  std::uint64_t before = 0;
  EXPECT_EQ(doca_sync_event_update_add(event_, 2, &before), DOCA_SUCCESS);
  EXPECT_EQ(before, 40U);
  EXPECT_EQ(value_of(event_), 42U);
  stop();
}

TEST_F(DocaSyncEventTest, AWaitEndsAtOnceWhenItsConditionHolds) {
  start();
  EXPECT_EQ(doca_sync_event_update_set(event_, 0x1234), DOCA_SUCCESS);
  for (auto* const wait : {&doca_sync_event_wait_gt, &doca_sync_event_wait_gt_yield}) {
    EXPECT_EQ(wait(event_, 0x1233, kAll), DOCA_SUCCESS);
    EXPECT_EQ(wait(event_, 0x33, 0xff), DOCA_SUCCESS);
  }
  for (auto* const wait : {&doca_sync_event_wait_eq, &doca_sync_event_wait_eq_yield}) {
    EXPECT_EQ(wait(event_, 0x1234, kAll), DOCA_SUCCESS);
    EXPECT_EQ(wait(event_, 0x1200, 0xff00), DOCA_SUCCESS);
    EXPECT_EQ(wait(event_, 0x1234, 0xff00), DOCA_ERROR_INVALID_VALUE);
  }
  for (auto* const wait : {&doca_sync_event_wait_neq, &doca_sync_event_wait_neq_yield}) {
    EXPECT_EQ(wait(event_, 0, kAll), DOCA_SUCCESS);
    EXPECT_EQ(wait(event_, 0x1300, 0xff00), DOCA_SUCCESS);
    EXPECT_EQ(wait(event_, 0x100, 0xff), DOCA_ERROR_INVALID_VALUE);
  }
  stop();
}

TEST_F(DocaSyncEventTest, AnotherProcessWaitsForItAndAdds) {
  start();
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;
  ASSERT_EQ(doca_sync_event_export_to_remote_pci(event_, dev_, &data, &size), DOCA_SUCCESS);
  const auto wait_and_add = [&](int) {
    doca_sync_event* other = nullptr;
    std::uint64_t before = 0;
    const bool done =
        doca_sync_event_create_from_export(dev_, data, size, &other) == DOCA_SUCCESS &&
        doca_sync_event_start(other) == DOCA_SUCCESS &&
        doca_sync_event_wait_eq_yield(other, 1, kAll) == DOCA_SUCCESS &&
        doca_sync_event_update_add(other, 6, &before) == DOCA_SUCCESS && before == 1 &&
        doca_sync_event_stop(other) == DOCA_SUCCESS &&
        doca_sync_event_destroy(other) == DOCA_SUCCESS;
    return done ? 0 : 1;
  };
  support::ChildProcess child(wait_and_add, std::chrono::seconds(30));
  EXPECT_EQ(doca_sync_event_update_set(event_, 1), DOCA_SUCCESS);
  const int status = child.wait();
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(doca_sync_event_wait_gt_yield(event_, 1, kAll), DOCA_SUCCESS);
  EXPECT_EQ(value_of(event_), 7U);
  stop();
}

TEST_F(DocaSyncEventTest, AnEventOfAnExportStaysWhenItsExporterEnds) {
  start();
  doca_sync_event* const other = import();
  EXPECT_EQ(doca_sync_event_add_publisher_location_remote_pci(other), DOCA_ERROR_NOT_PERMITTED);
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;
  ASSERT_EQ(doca_sync_event_start(other), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_export_to_remote_pci(other, dev_, &data, &size),
            DOCA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(doca_sync_event_update_set(event_, 5), DOCA_SUCCESS);
  ASSERT_EQ(doca_sync_event_export_to_remote_pci(event_, dev_, &data, &size), DOCA_SUCCESS);
  const std::vector<std::uint8_t> blob(data, data + size);
  stop();
  EXPECT_EQ(doca_sync_event_destroy(std::exchange(event_, nullptr)), DOCA_SUCCESS);
  EXPECT_EQ(value_of(other), 5U);
  EXPECT_EQ(doca_dev_close(dev_), DOCA_ERROR_IN_USE) << "the event of the export uses it";
  EXPECT_EQ(doca_sync_event_stop(other), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_destroy(other), DOCA_SUCCESS);
  doca_sync_event* late = nullptr;
  EXPECT_EQ(doca_sync_event_create_from_export(dev_, blob.data(), blob.size(), &late),
            DOCA_ERROR_NOT_FOUND);
  EXPECT_EQ(doca_sync_event_create_from_export(dev_, blob.data(), blob.size() - 1, &late),
            DOCA_ERROR_INVALID_VALUE);
}

TEST_F(DocaSyncEventTest, ItIsStartedInOneOfTwoModes) {
  std::uint64_t value = 0;
  EXPECT_EQ(doca_sync_event_get(event_, &value), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_sync_event_update_set(event_, 1), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_sync_event_update_add(event_, 1, &value), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_sync_event_wait_gt(event_, 0, kAll), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_sync_event_wait_eq(event_, 0, kAll), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_sync_event_stop(event_), DOCA_ERROR_BAD_STATE);
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;
  EXPECT_EQ(doca_sync_event_export_to_remote_pci(event_, dev_, &data, &size), DOCA_ERROR_BAD_STATE);
  start();
  EXPECT_EQ(doca_sync_event_start(event_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_sync_event_destroy(event_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_sync_event_as_ctx(event_), nullptr);
  EXPECT_EQ(doca_sync_event_add_subscriber_location_remote_pci(event_), DOCA_ERROR_BAD_STATE);
  stop();
  EXPECT_NE(doca_sync_event_as_ctx(event_), nullptr);
  EXPECT_EQ(doca_sync_event_start(event_), DOCA_ERROR_BAD_STATE) << "it is a context now";
}

TEST_F(DocaSyncEventTest, ItNeedsAPlaceForEachSide) {
  doca_sync_event* event = nullptr;
  ASSERT_EQ(doca_sync_event_create(&event), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_start(event), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_sync_event_add_publisher_location_cpu(event, dev_), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_start(event), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_sync_event_add_subscriber_location_remote_pci(event), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_start(event), DOCA_SUCCESS);
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;
  EXPECT_EQ(doca_sync_event_export_to_remote_net(event, &data, &size), DOCA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(doca_sync_event_export_to_remote_pci(event, dev_, &data, &size), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_stop(event), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_add_publisher_location_remote_net(event), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_start(event), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_export_to_remote_pci(event, dev_, &data, &size),
            DOCA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(doca_sync_event_export_to_remote_net(event, &data, &size), DOCA_ERROR_NOT_SUPPORTED)
      << "none of its devices is one for RDMA";
  EXPECT_EQ(doca_sync_event_stop(event), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_destroy(event), DOCA_SUCCESS);
}

TEST_F(DocaSyncEventTest, AHostDeviceExportsToTheOtherSideOfPci) {
  const doca_devinfo* const info = doca_dev_as_devinfo(dev_);
  EXPECT_EQ(doca_sync_event_cap_is_export_to_remote_pci_supported(info), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_cap_is_create_from_export_supported(info), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_cap_is_export_to_remote_net_supported(info), DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_sync_event_cap_remote_net_is_create_from_export_supported(info),
            DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_sync_event_cap_is_export_to_gpu_supported(info), DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_sync_event_cap_task_get_is_supported(info), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_cap_task_notify_set_is_supported(info), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_cap_task_notify_add_is_supported(info), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_cap_task_wait_eq_is_supported(info), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_cap_task_wait_neq_is_supported(info), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_cap_task_get_is_supported(nullptr), DOCA_ERROR_INVALID_VALUE);
  doca_sync_event_remote_net* remote = nullptr;
  const std::uint8_t byte = 0;
  EXPECT_EQ(doca_sync_event_remote_net_create_from_export(dev_, &byte, 1, &remote),
            DOCA_ERROR_NOT_SUPPORTED);
}

TEST_F(DocaSyncEventTest, NullIsRefused) {
  std::uint64_t value = 0;
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;
  auto* const gpu = reinterpret_cast<doca_gpu*>(&value);
  start();
  EXPECT_EQ(doca_sync_event_create(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_destroy(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_add_publisher_location_cpu(nullptr, dev_), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_add_publisher_location_cpu(event_, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_add_subscriber_location_cpu(nullptr, dev_), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_add_publisher_location_remote_pci(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_add_publisher_location_remote_net(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_add_subscriber_location_remote_pci(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_add_publisher_location_gpu(event_, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_add_publisher_location_gpu(event_, gpu), DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_sync_event_add_subscriber_location_gpu(nullptr, gpu), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_add_subscriber_location_gpu(event_, gpu), DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_sync_event_start(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_stop(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_as_ctx(nullptr), nullptr);
  EXPECT_EQ(doca_sync_event_export_to_remote_pci(event_, nullptr, &data, &size),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_export_to_remote_net(event_, nullptr, &size), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_create_from_export(dev_, nullptr, 0, &event_),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_remote_net_create_from_export(dev_, nullptr, 0, nullptr),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_remote_net_destroy(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_cap_is_export_to_remote_pci_supported(nullptr),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_cap_is_create_from_export_supported(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_cap_is_export_to_gpu_supported(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_get(event_, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_update_set(nullptr, 0), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_update_add(event_, 0, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_wait_gt(nullptr, 0, kAll), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_wait_eq(nullptr, 0, kAll), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_wait_neq(nullptr, 0, kAll), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_wait_neq_yield(nullptr, 0, kAll), DOCA_ERROR_INVALID_VALUE);
  stop();
}

/// An event as a context, with tasks of each kind.
class DocaSyncTasksTest : public DocaSyncEventTest {
 protected:
  DocaSyncTasksTest() : ctx_(doca_sync_event_as_ctx(event_)) {
    EXPECT_EQ(doca_pe_create(&pe_), DOCA_SUCCESS);
    EXPECT_EQ(doca_pe_connect_ctx(pe_, ctx_), DOCA_SUCCESS);
    EXPECT_EQ(doca_ctx_set_user_data(ctx_, {.ptr = this}), DOCA_SUCCESS);
    EXPECT_EQ(doca_sync_event_task_get_set_conf(event_, on_end, on_failure, 2), DOCA_SUCCESS);
    EXPECT_EQ(doca_sync_event_task_notify_set_set_conf(event_, on_end, on_failure, 2),
              DOCA_SUCCESS);
    EXPECT_EQ(doca_sync_event_task_notify_add_set_conf(event_, on_end, on_failure, 2),
              DOCA_SUCCESS);
    EXPECT_EQ(doca_sync_event_task_wait_eq_set_conf(event_, on_end, on_failure, 2), DOCA_SUCCESS);
    EXPECT_EQ(doca_sync_event_task_wait_neq_set_conf(event_, on_end, on_failure, 2), DOCA_SUCCESS);
  }
  ~DocaSyncTasksTest() override {
    static_cast<void>(doca_ctx_stop(ctx_));
    for (int turns = 0; turns < 10; ++turns) turn();
    for (doca_task* task : tasks_) doca_task_free(task);
    turn();
    EXPECT_EQ(doca_sync_event_destroy(std::exchange(event_, nullptr)), DOCA_SUCCESS);
    EXPECT_EQ(doca_pe_destroy(pe_), DOCA_SUCCESS);
  }

  void start_ctx() { ASSERT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS); }
  void turn() { static_cast<void>(doca_pe_progress(pe_)); }
  /// Submits a task, which the end of the test frees.
  void submit(doca_task* task) {
    tasks_.push_back(task);
    ASSERT_EQ(doca_task_submit(task), DOCA_SUCCESS);
  }
  void run_until(std::size_t ended) {
    for (int turns = 0; turns < 1000 && ended_.size() < ended; ++turns) turn();
    ASSERT_EQ(ended_.size(), ended);
  }
  doca_sync_event_task_wait_eq* wait_eq(std::uint64_t value, std::uint64_t mask) {
    doca_sync_event_task_wait_eq* task = nullptr;
    EXPECT_EQ(doca_sync_event_task_wait_eq_alloc_init(event_, value, mask, {.u64 = 4}, &task),
              DOCA_SUCCESS);
    return task;
  }
  doca_sync_event_task_wait_neq* wait_neq(std::uint64_t value, std::uint64_t mask) {
    doca_sync_event_task_wait_neq* task = nullptr;
    EXPECT_EQ(doca_sync_event_task_wait_neq_alloc_init(event_, value, mask, {.u64 = 5}, &task),
              DOCA_SUCCESS);
    return task;
  }

  template <class DocaTask>
  static void on_end(DocaTask* task, doca_data task_data, doca_data ctx_data) {
    EXPECT_NE(task, nullptr);
    static_cast<DocaSyncTasksTest*>(ctx_data.ptr)->ended_.push_back(task_data.u64);
  }
  template <class DocaTask>
  static void on_failure(DocaTask* task, doca_data task_data, doca_data ctx_data) {
    EXPECT_NE(task, nullptr);
    static_cast<DocaSyncTasksTest*>(ctx_data.ptr)->failed_.push_back(task_data.u64);
  }

  doca_pe* pe_ = nullptr;
  doca_ctx* ctx_;
  std::vector<doca_task*> tasks_;
  std::vector<std::uint64_t> ended_;  ///< the user data of each
  std::vector<std::uint64_t> failed_;
};

TEST_F(DocaSyncTasksTest, SetAddAndGetInTheirOrder) {
  start_ctx();
  std::uint64_t before = 0;
  std::uint64_t value = 0;
  doca_sync_event_task_notify_set* set = nullptr;
  ASSERT_EQ(doca_sync_event_task_notify_set_alloc_init(event_, 40, {.u64 = 1}, &set), DOCA_SUCCESS);
  doca_sync_event_task_notify_add* add = nullptr;
  ASSERT_EQ(doca_sync_event_task_notify_add_alloc_init(event_, 2, &before, {.u64 = 2}, &add),
            DOCA_SUCCESS);
  doca_sync_event_task_get* get = nullptr;
  ASSERT_EQ(doca_sync_event_task_get_alloc_init(event_, &value, {.u64 = 3}, &get), DOCA_SUCCESS);
  submit(doca_sync_event_task_notify_set_as_doca_task(set));
  submit(doca_sync_event_task_notify_add_as_doca_task(add));
  submit(doca_sync_event_task_get_as_doca_task(get));
  run_until(3);
  EXPECT_EQ(ended_, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(before, 40U);
  EXPECT_EQ(value, 42U);
  // Their fields, and the same tasks again with others.
  EXPECT_EQ(doca_sync_event_task_notify_set_get_set_val(set), 40U);
  EXPECT_EQ(doca_sync_event_task_notify_add_get_inc_val(add), 2U);
  EXPECT_EQ(doca_sync_event_task_notify_add_get_fetched_val_ptr(add), &before);
  EXPECT_EQ(doca_sync_event_task_get_get_ret_val_ptr(get), &value);
  std::uint64_t other = 0;
  doca_sync_event_task_notify_set_set_set_val(set, 7);
  doca_sync_event_task_notify_add_set_inc_val(add, 1);
  doca_sync_event_task_notify_add_set_fetched_val_ptr(add, nullptr);
  doca_sync_event_task_get_set_ret_val_ptr(get, nullptr);
  EXPECT_EQ(doca_task_submit(tasks_[2]), DOCA_ERROR_INVALID_VALUE) << "without a place to read to";
  doca_sync_event_task_get_set_ret_val_ptr(get, &other);
  for (doca_task* task : tasks_) ASSERT_EQ(doca_task_submit(task), DOCA_SUCCESS);
  doca_sync_event_task_notify_set_set_set_val(set, 9);  // in flight: refused
  run_until(6);
  EXPECT_EQ(other, 8U);
  EXPECT_EQ(before, 40U) << "its pointer was taken away";
}

TEST_F(DocaSyncTasksTest, AWaitEndsWhenTheOtherSideHasPublished) {
  start_ctx();
  doca_sync_event* const other = import();
  ASSERT_EQ(doca_sync_event_start(other), DOCA_SUCCESS);
  submit(doca_sync_event_task_wait_eq_as_doca_task(wait_eq(0x12, kAll)));
  submit(doca_sync_event_task_wait_eq_as_doca_task(wait_eq(0x20, 0xf0)));
  for (int turns = 0; turns < 5; ++turns) turn();
  EXPECT_TRUE(ended_.empty());
  EXPECT_EQ(doca_sync_event_update_set(other, 0x12), DOCA_SUCCESS);
  run_until(1);
  EXPECT_EQ(doca_task_get_status(tasks_[0]), DOCA_SUCCESS);
  submit(doca_sync_event_task_wait_neq_as_doca_task(wait_neq(0x12, kAll)));
  submit(doca_sync_event_task_wait_neq_as_doca_task(wait_neq(0x10, 0xf0)));
  for (int turns = 0; turns < 5; ++turns) turn();
  EXPECT_EQ(ended_.size(), 1U);
  EXPECT_EQ(doca_sync_event_update_set(other, 0x23), DOCA_SUCCESS);
  run_until(4);
  EXPECT_TRUE(failed_.empty());
  EXPECT_EQ(doca_sync_event_stop(other), DOCA_SUCCESS);
  EXPECT_EQ(doca_sync_event_destroy(other), DOCA_SUCCESS);
}

TEST_F(DocaSyncTasksTest, AStopFailsWhatWaits) {
  start_ctx();
  submit(doca_sync_event_task_wait_eq_as_doca_task(wait_eq(1, kAll)));
  turn();
  EXPECT_EQ(doca_sync_event_destroy(event_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_ctx_stop(ctx_), DOCA_ERROR_IN_PROGRESS);
  turn();
  EXPECT_EQ(failed_, std::vector<std::uint64_t>{4});
  EXPECT_EQ(doca_task_get_status(tasks_[0]), DOCA_ERROR_SHUTDOWN);
}

TEST_F(DocaSyncTasksTest, AWaitHasAValueAndAMask) {
  start_ctx();
  doca_sync_event_task_wait_eq* const equal = wait_eq(0x12, 0xf0);
  doca_sync_event_task_wait_neq* const unequal = wait_neq(0x12, 0xf0);
  tasks_ = {doca_sync_event_task_wait_eq_as_doca_task(equal),
            doca_sync_event_task_wait_neq_as_doca_task(unequal)};
  for (doca_task* task : tasks_) {
    EXPECT_EQ(doca_task_submit(task), DOCA_ERROR_INVALID_VALUE) << "a bit beside the mask";
  }
  EXPECT_EQ(doca_sync_event_task_wait_eq_get_wait_val(equal), 0x12U);
  EXPECT_EQ(doca_sync_event_task_wait_eq_get_mask(equal), 0xf0U);
  EXPECT_EQ(doca_sync_event_task_wait_neq_get_wait_val(unequal), 0x12U);
  EXPECT_EQ(doca_sync_event_task_wait_neq_get_mask(unequal), 0xf0U);
  doca_sync_event_task_wait_eq_set_wait_val(equal, 0);
  doca_sync_event_task_wait_eq_set_mask(equal, 0xff);
  doca_sync_event_task_wait_neq_set_wait_val(unequal, 1);
  doca_sync_event_task_wait_neq_set_mask(unequal, 1);
  for (doca_task* task : tasks_) EXPECT_EQ(doca_task_submit(task), DOCA_SUCCESS);
  run_until(2);
}

TEST_F(DocaSyncTasksTest, TasksAreConfiguredBeforeTheStart) {
  doca_sync_event_task_get* task = nullptr;
  std::uint64_t value = 0;
  EXPECT_EQ(doca_sync_event_task_get_alloc_init(event_, &value, {}, &task), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_sync_event_task_get_set_conf(event_, on_end, on_failure, 0),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_task_get_set_conf(event_, on_end, nullptr, 1),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_sync_event_task_get_set_conf(event_, on_end, on_failure, 1), DOCA_SUCCESS);
  start_ctx();
  EXPECT_EQ(doca_sync_event_task_get_set_conf(event_, on_end, on_failure, 1), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_sync_event_task_get_alloc_init(event_, nullptr, {}, &task),
            DOCA_ERROR_INVALID_VALUE);
  ASSERT_EQ(doca_sync_event_task_get_alloc_init(event_, &value, {}, &task), DOCA_SUCCESS);
  tasks_.push_back(doca_sync_event_task_get_as_doca_task(task));
  EXPECT_EQ(doca_sync_event_task_get_alloc_init(event_, &value, {}, &task), DOCA_ERROR_NO_MEMORY);
  EXPECT_EQ(doca_sync_event_task_get_as_doca_task(nullptr), nullptr);
  EXPECT_EQ(doca_sync_event_task_get_get_ret_val_ptr(nullptr), nullptr);
  EXPECT_EQ(doca_sync_event_task_notify_set_get_set_val(nullptr), 0U);
  doca_sync_event_task_notify_set_set_set_val(nullptr, 1);
}

TEST_F(DocaSyncTasksTest, TasksOfAGraphWriteTheirResultsBeforeTheNextNode) {
  start_ctx();
  struct Run {
    std::uint64_t before = 0;
    std::uint64_t value = 0;
    std::uint64_t seen = 0;  ///< by the user node
    int ended = 0;
  } run;
  const auto look = [](void* cookie) {
    auto& self = *static_cast<Run*>(cookie);
    self.seen = self.before + self.value;
    return DOCA_SUCCESS;
  };
  const auto on_instance = [](doca_graph_instance*, doca_data data, doca_data) {
    ++static_cast<Run*>(data.ptr)->ended;
  };
  doca_graph* graph = nullptr;
  doca_graph_node* nodes[3] = {};
  ASSERT_EQ(doca_graph_create(pe_, &graph), DOCA_SUCCESS);
  ASSERT_EQ(doca_graph_node_create_from_ctx(graph, ctx_, &nodes[0]), DOCA_SUCCESS);
  ASSERT_EQ(doca_graph_node_create_from_ctx(graph, ctx_, &nodes[1]), DOCA_SUCCESS);
  ASSERT_EQ(doca_graph_node_create_from_user(graph, look, &nodes[2]), DOCA_SUCCESS);
  ASSERT_EQ(doca_graph_add_dependency(graph, nodes[0], nodes[1]), DOCA_SUCCESS);
  ASSERT_EQ(doca_graph_add_dependency(graph, nodes[1], nodes[2]), DOCA_SUCCESS);
  ASSERT_EQ(doca_graph_set_conf(graph, on_instance, on_instance, 1), DOCA_SUCCESS);
  ASSERT_EQ(doca_graph_start(graph), DOCA_SUCCESS);
  doca_sync_event_task_notify_add* add = nullptr;
  ASSERT_EQ(doca_sync_event_task_notify_add_alloc_init(event_, 5, &run.before, {}, &add),
            DOCA_SUCCESS);
  doca_sync_event_task_get* get = nullptr;
  ASSERT_EQ(doca_sync_event_task_get_alloc_init(event_, &run.value, {}, &get), DOCA_SUCCESS);
  tasks_ = {doca_sync_event_task_notify_add_as_doca_task(add),
            doca_sync_event_task_get_as_doca_task(get)};
  doca_graph_instance* instance = nullptr;
  ASSERT_EQ(doca_graph_instance_create(graph, &instance), DOCA_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    doca_task* const task = tasks_[static_cast<std::size_t>(i)];
    ASSERT_EQ(doca_graph_instance_set_ctx_node_data(instance, nodes[i], task), DOCA_SUCCESS);
  }
  ASSERT_EQ(doca_graph_instance_set_user_node_data(instance, nodes[2], &run), DOCA_SUCCESS);
  ASSERT_EQ(doca_graph_instance_set_user_data(instance, {.ptr = &run}), DOCA_SUCCESS);
  for (int round = 1; round <= 2; ++round) {
    ASSERT_EQ(doca_graph_instance_submit(instance), DOCA_SUCCESS);
    for (int turns = 0; turns < 1000 && run.ended < round; ++turns) turn();
    ASSERT_EQ(run.ended, round);
  }
  EXPECT_EQ(run.before, 5U);
  EXPECT_EQ(run.value, 10U);
  EXPECT_EQ(run.seen, 15U);
  EXPECT_TRUE(ended_.empty()) << "a callback of a task";
  EXPECT_EQ(doca_graph_instance_destroy(instance), DOCA_SUCCESS);
  EXPECT_EQ(doca_graph_stop(graph), DOCA_SUCCESS);
  EXPECT_EQ(doca_graph_destroy(graph), DOCA_SUCCESS);
}

}  // namespace
}  // namespace offload::doca
