#include <doca_graph.h>
#include <gtest/gtest.h>

#include "tests/doca/dma_fixture.hpp"

namespace offload::doca {
namespace {

/// Two copies of one piece, each a node, then a user node that the program looks at both from.
class DocaGraphTest : public DmaTest {
 protected:
  DocaGraphTest() {
    EXPECT_EQ(doca_ctx_start(ctx_), DOCA_SUCCESS);
    EXPECT_EQ(doca_graph_create(pe_, &graph_), DOCA_SUCCESS);
    EXPECT_EQ(doca_graph_node_create_from_ctx(graph_, ctx_, &first_), DOCA_SUCCESS);
    const doca_ctx* const same = ctx_;
    EXPECT_EQ(doca_graph_node_create_from_ctx(graph_, same, &second_), DOCA_SUCCESS);
    EXPECT_EQ(doca_graph_node_create_from_user(graph_, on_user, &user_), DOCA_SUCCESS);
    EXPECT_EQ(doca_graph_add_dependency(graph_, first_, second_), DOCA_SUCCESS);
    EXPECT_EQ(doca_graph_add_dependency(graph_, second_, user_), DOCA_SUCCESS);
    EXPECT_EQ(doca_graph_set_conf(graph_, on_success, on_failure, 1), DOCA_SUCCESS);
    EXPECT_EQ(doca_graph_set_user_data(graph_, {.ptr = this}), DOCA_SUCCESS);
  }
  ~DocaGraphTest() override {
    static_cast<void>(doca_graph_stop(graph_));
    EXPECT_EQ(doca_graph_destroy(graph_), DOCA_SUCCESS);
  }

  /// Starts the graph and makes an instance, whose second copy takes what the first one wrote.
  void prepare() {
    ASSERT_EQ(doca_graph_start(graph_), DOCA_SUCCESS);
    const doca_graph* const same = graph_;
    ASSERT_EQ(doca_graph_instance_create(same, &instance_), DOCA_SUCCESS);
    tasks_ = {copy_task(0, 6, 1), copy_task(1, 0, 2)};
    ASSERT_EQ(bind(first_, tasks_[0]), DOCA_SUCCESS);
    ASSERT_EQ(bind(second_, tasks_[1]), DOCA_SUCCESS);
    ASSERT_EQ(doca_graph_instance_set_user_node_data(instance_, user_, this), DOCA_SUCCESS);
    ASSERT_EQ(doca_graph_instance_set_user_data(instance_, {.u64 = 12}), DOCA_SUCCESS);
  }
  void release() {
    EXPECT_EQ(doca_graph_instance_destroy(instance_), DOCA_SUCCESS);
    for (doca_dma_task_memcpy* task : tasks_) free_all(task);
  }
  doca_error_t bind(doca_graph_node* node, doca_dma_task_memcpy* task) {
    return doca_graph_instance_set_ctx_node_data(instance_, node,
                                                 doca_dma_task_memcpy_as_task(task));
  }
  void progress_until_reported() {
    for (int turns = 0; turns < 1000 && succeeded_ + failed_ == 0; ++turns) turn();
  }

  static doca_error_t on_user(void* cookie) {
    auto& self = *static_cast<DocaGraphTest*>(cookie);
    self.seen_ = *self.piece(2);
    if (self.submitted_in_user_node_ != nullptr) {
      self.submission_ = submit(self.submitted_in_user_node_);
    }
    return self.user_result_;
  }
  static void on_success(doca_graph_instance* instance, doca_data data, doca_data graph_data) {
    auto& self = *static_cast<DocaGraphTest*>(graph_data.ptr);
    EXPECT_EQ(instance, self.instance_);
    EXPECT_EQ(data.u64, 12U);
    ++self.succeeded_;
  }
  static void on_failure(doca_graph_instance* /*instance*/, doca_data /*data*/,
                         doca_data graph_data) {
    ++static_cast<DocaGraphTest*>(graph_data.ptr)->failed_;
  }

  doca_graph* graph_ = nullptr;
  doca_graph_node* first_ = nullptr;
  doca_graph_node* second_ = nullptr;
  doca_graph_node* user_ = nullptr;
  doca_graph_instance* instance_ = nullptr;
  std::vector<doca_dma_task_memcpy*> tasks_;
  doca_error_t user_result_ = DOCA_SUCCESS;
  doca_dma_task_memcpy* submitted_in_user_node_ = nullptr;
  doca_error_t submission_ = DOCA_ERROR_UNKNOWN;
  int seen_ = -1;  ///< by the user node
  int succeeded_ = 0;
  int failed_ = 0;
};

TEST_F(DocaGraphTest, NodesRunInTheirOrderWithoutTheTasksCallbacks) {
  prepare();
  ASSERT_EQ(doca_graph_instance_submit(instance_), DOCA_SUCCESS);
  EXPECT_EQ(doca_graph_instance_submit(instance_), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_graph_instance_destroy(instance_), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_graph_instance_set_user_data(instance_, {.u64 = 13}), DOCA_ERROR_IN_USE);
  EXPECT_EQ(bind(first_, tasks_[0]), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_graph_instance_set_user_node_data(instance_, user_, this), DOCA_ERROR_BAD_STATE);
  progress_until_reported();
  EXPECT_EQ(succeeded_, 1);
  EXPECT_EQ(seen_, 6) << "the second copy is of what the first one wrote";
  EXPECT_TRUE(ended_.empty());
  EXPECT_EQ(doca_task_get_status(doca_dma_task_memcpy_as_task(tasks_[0])), DOCA_SUCCESS);
  doca_data data{};
  EXPECT_EQ(doca_graph_instance_get_user_data(instance_, &data), DOCA_SUCCESS);
  EXPECT_EQ(data.u64, 12U);
  EXPECT_EQ(doca_graph_get_user_data(graph_, &data), DOCA_SUCCESS);
  EXPECT_EQ(data.ptr, this);
  release();
}

TEST_F(DocaGraphTest, TasksAreTheInstancesWhileItIsInFlight) {
  prepare();
  ASSERT_EQ(doca_graph_instance_submit(instance_), DOCA_SUCCESS);
  doca_task* const second = doca_dma_task_memcpy_as_task(tasks_[1]);
  EXPECT_EQ(doca_task_submit(second), DOCA_ERROR_BAD_STATE) << "it has not begun";
  // These log an error and do nothing else.
  doca_task_free(second);
  const doca_buf* const source = doca_dma_task_memcpy_get_src(tasks_[1]);
  doca_dma_task_memcpy_set_src(tasks_[1], nullptr);
  EXPECT_EQ(doca_dma_task_memcpy_get_src(tasks_[1]), source);
  submitted_in_user_node_ = tasks_[0];
  progress_until_reported();
  EXPECT_EQ(succeeded_, 1);
  EXPECT_EQ(seen_, 6);
  EXPECT_EQ(submission_, DOCA_ERROR_BAD_STATE) << "it has ended, but its instance has not";
  EXPECT_TRUE(ended_.empty());
  doca_buf* const target = doca_dma_task_memcpy_get_dst(tasks_[1]);
  EXPECT_EQ(doca_buf_reset_data_len(target), DOCA_SUCCESS);
  frees_ = false;
  EXPECT_EQ(doca_task_submit(second), DOCA_SUCCESS) << "it is the program's again";
  progress_until_ended(1);
  release();
}

TEST_F(DocaGraphTest, AUserNodeThatFailsFailsItsInstance) {
  user_result_ = DOCA_ERROR_BAD_STATE;
  prepare();
  ASSERT_EQ(doca_graph_instance_submit(instance_), DOCA_SUCCESS);
  progress_until_reported();
  EXPECT_EQ(failed_, 1);
  release();
}

TEST_F(DocaGraphTest, ATaskStopsNoContextAndMayCopyNoBytes) {
  prepare();
  auto* const from = const_cast<doca_buf*>(doca_dma_task_memcpy_get_src(tasks_[0]));
  ASSERT_EQ(doca_buf_reset_data_len(from), DOCA_SUCCESS);
  ASSERT_EQ(doca_graph_instance_submit(instance_), DOCA_SUCCESS);
  progress_until_reported();
  EXPECT_EQ(succeeded_, 1);
  // The destination of the second copy is full now.
  ASSERT_EQ(doca_graph_instance_submit(instance_), DOCA_SUCCESS);
  for (int turns = 0; turns < 1000 && failed_ == 0; ++turns) turn();
  EXPECT_EQ(failed_, 1);
  EXPECT_EQ(state(), DOCA_CTX_STATE_RUNNING);
  release();
}

TEST_F(DocaGraphTest, WhatIsInUseStays) {
  prepare();
  doca_graph_instance* other = nullptr;
  EXPECT_EQ(doca_graph_instance_create(graph_, &other), DOCA_ERROR_NO_MEMORY);
  EXPECT_EQ(doca_graph_stop(graph_), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_graph_destroy(graph_), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_pe_destroy(pe_), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_graph_start(graph_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_graph_node_create_from_ctx(graph_, ctx_, &first_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_graph_node_create_from_user(graph_, on_user, &user_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_graph_add_dependency(graph_, first_, user_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_graph_set_conf(graph_, on_success, on_failure, 1), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_graph_set_user_data(graph_, {.u64 = 13}), DOCA_ERROR_BAD_STATE);
  release();
  EXPECT_EQ(doca_graph_destroy(graph_), DOCA_ERROR_BAD_STATE) << "it is started";
  EXPECT_EQ(doca_graph_stop(graph_), DOCA_SUCCESS);
  EXPECT_EQ(doca_graph_stop(graph_), DOCA_SUCCESS) << "it is stopped already";
  EXPECT_EQ(doca_ctx_stop(ctx_), DOCA_SUCCESS);
  EXPECT_EQ(doca_dma_destroy(dma_), DOCA_ERROR_IN_USE) << "a graph has nodes of it";
  EXPECT_EQ(doca_dma_task_memcpy_set_conf(dma_, on_end, on_end, 1), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_graph_instance_create(graph_, &other), DOCA_ERROR_BAD_STATE);
}

TEST_F(DocaGraphTest, AGraphIsCheckedAtItsStart) {
  doca_graph* other = nullptr;
  ASSERT_EQ(doca_graph_create(pe_, &other), DOCA_SUCCESS);
  EXPECT_EQ(doca_graph_start(other), DOCA_ERROR_BAD_STATE) << "it has no configuration";
  ASSERT_EQ(doca_graph_set_conf(other, on_success, on_failure, 1), DOCA_SUCCESS);
  EXPECT_EQ(doca_graph_start(other), DOCA_ERROR_INVALID_VALUE) << "it has no nodes";
  EXPECT_EQ(doca_graph_add_dependency(other, first_, user_), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_graph_destroy(other), DOCA_SUCCESS);
  ASSERT_EQ(doca_graph_add_dependency(graph_, user_, first_), DOCA_SUCCESS);
  EXPECT_EQ(doca_graph_start(graph_), DOCA_ERROR_INVALID_VALUE) << "it has a cycle";
}

TEST_F(DocaGraphTest, EachNodeNeedsATaskThatCanBeSubmitted) {
  ASSERT_EQ(doca_graph_start(graph_), DOCA_SUCCESS);
  ASSERT_EQ(doca_graph_instance_create(graph_, &instance_), DOCA_SUCCESS);
  EXPECT_EQ(doca_graph_instance_submit(instance_), DOCA_ERROR_INVALID_VALUE);
  doca_dma_task_memcpy* const task = copy_task(0, 6, 1);
  EXPECT_EQ(bind(user_, task), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_graph_instance_set_user_node_data(instance_, first_, this),
            DOCA_ERROR_INVALID_VALUE);
  ASSERT_EQ(bind(first_, task), DOCA_SUCCESS);
  free_all(task);
  EXPECT_EQ(doca_graph_instance_submit(instance_), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_graph_instance_destroy(instance_), DOCA_SUCCESS);
}

TEST_F(DocaGraphTest, NullIsRefused) {
  EXPECT_EQ(doca_graph_create(nullptr, &graph_), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_graph_destroy(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_graph_start(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_graph_stop(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_graph_node_create_from_ctx(graph_, nullptr, &first_), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_graph_node_create_from_user(graph_, nullptr, &user_), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_graph_add_dependency(graph_, nullptr, user_), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_graph_set_conf(graph_, on_success, on_failure, 0), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_graph_set_user_data(nullptr, {}), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_graph_get_user_data(graph_, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_graph_instance_create(graph_, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_graph_instance_destroy(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_graph_instance_set_ctx_node_data(nullptr, first_, nullptr),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_graph_instance_set_user_node_data(nullptr, user_, nullptr),
            DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_graph_instance_set_user_data(nullptr, {}), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_graph_instance_get_user_data(nullptr, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_graph_instance_submit(nullptr), DOCA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace offload::doca
