#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "progress/context.hpp"
#include "rdma/verbs/completion_loop.hpp"
#include "rdma/verbs/queue_pair.hpp"
#include "rdma/verbs/shared_receive_queue.hpp"
#include "rdma_tasks/operation.hpp"
#include "rdma_tasks/work_request.hpp"

namespace offload::rdma {

/// The receives that many connections share: a context whose tasks are SharedReceiveTasks. Each
/// message takes the oldest; a task that is done has the qp_num of its connection.
///
///     shared.connect(engine);  shared.start();
///     options.queues.srq = shared.queue();   // of the connections, before they start
///
/// It starts before its connections and stops after them; until then the device may write to the
/// receives. A connection that breaks costs the others no receive, except one that its message had
/// begun to fill, which fails.
///
/// Errors of submission: full; invalid_value and not_permitted as for a Connection; driver after
/// the completion queue has failed. Used by the engine's thread only.
class SharedReceives final : public progress::Context, CompletionHandler {
 public:
  /// For `max_wr` receives of at most `max_sge` scatter elements. Domain, registrar (of that
  /// domain) and loop outlive it. Throws Error (invalid_value) if either is 0.
  SharedReceives(const ProtectionDomain& domain, const RdmaRegistrar& registrar,
                 CompletionLoop& completions, std::uint32_t max_wr, std::uint32_t max_sge = 1,
                 std::string name = "shared receives")
      : Context(std::move(name), Turns::on_request),
        domain_(domain),
        registrar_(registrar),
        completions_(completions),
        max_sge_(max_sge),
        slots_(max_wr),
        elements_(std::size_t{max_wr} * max_sge) {
    if (elements_.empty()) {
      throw core::Error(core::ErrorCode::invalid_value,
                        "'" + this->name() + "': it needs a receive");
    }
    free_.reserve(max_wr);
    unposted_.reserve(max_wr);
    refused_.reserve(max_wr);
  }
  ~SharedReceives() override { end(); }

  /// Null while it is idle.
  [[nodiscard]] const SharedReceiveQueue* queue() const noexcept {
    return queue_ ? &*queue_ : nullptr;
  }

 private:
  Step on_start() override {
    const auto max_wr = static_cast<std::uint32_t>(slots_.size());
    SharedReceiveQueue queue(domain_, max_wr, max_sge_);
    tag_ = completions_.add(*this, max_wr);
    queue_ = std::move(queue);
    free_.resize(max_wr);
    std::iota(free_.begin(), free_.end(), 0U);
    for (Slot& slot : slots_) slot.task = nullptr;
    failed_ = false;
    return Step::done;
  }
  Step on_stop() noexcept override {
    end_queue();
    return Step::done;
  }
  void on_abandon() noexcept override { end_queue(); }
  core::Status on_submit(progress::Task& submitted) noexcept override {
    auto& task = static_cast<SharedReceiveTask&>(submitted);
    if (failed_) return core::ErrorCode::driver;
    if (free_.empty()) return core::ErrorCode::full;
    const std::uint32_t number = free_.back();
    Slot& slot = slots_[number];
    const auto sg_list = std::span(elements_).subspan(std::size_t{number} * max_sge_, max_sge_);
    slot.request = {};
    slot.request.wr_id = std::uint64_t{tag_} << 32 | number;
    slot.request.sg_list = sg_list.data();
    std::uint64_t length = 0;
    const core::Status status =
        scatter(registrar_, task.destination, kMaxMessage, sg_list, slot.request.num_sge, length);
    if (!status.ok()) return status;
    task.clear();
    slot.task = &task;
    free_.pop_back();
    unposted_.push_back(number);
    return {};
  }
  void on_flush() noexcept override {
    if (unposted_.empty()) return;
    for (std::size_t i = 0; i + 1 < unposted_.size(); ++i) {
      slots_[unposted_[i]].request.next = &slots_[unposted_[i + 1]].request;
    }
    ibv_recv_wr* bad = nullptr;
    ibv_recv_wr& first = slots_[unposted_.front()].request;
    std::size_t posted = unposted_.size();
    if (!queue_->post(first, bad).ok()) {
      posted = 0;
      while (posted != unposted_.size() && &slots_[unposted_[posted]].request != bad) ++posted;
      refused_.insert(refused_.end(), unposted_.begin() + static_cast<std::ptrdiff_t>(posted),
                      unposted_.end());
      request_turn();
    }
    unposted_.clear();
    outstanding_ += posted;
    completions_.on_posted(posted);
  }
  /// Completes the tasks that the device did not take: not in on_flush, so that no callback runs
  /// inside a submission.
  bool on_poll(std::size_t most) override {
    std::size_t ended = 0;
    for (; ended < most && !refused_.empty(); ++ended) {
      const std::uint32_t number = refused_.back();
      refused_.pop_back();
      free_.push_back(number);
      complete(*std::exchange(slots_[number].task, nullptr), core::ErrorCode::driver);
    }
    if (!refused_.empty()) request_turn();
    return ended != 0;
  }
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::nothing;  // the completion loop does
  }
  core::Duration arm() override {
    return refused_.empty() ? core::Duration::max() : core::Duration{};
  }
  void on_completion(std::uint32_t number, const ibv_wc& completion) override {
    if (number >= slots_.size() || slots_[number].task == nullptr) return;
    SharedReceiveTask& task = *std::exchange(slots_[number].task, nullptr);
    free_.push_back(number);
    --outstanding_;
    completions_.on_completed(1);
    task.qp_num_ = completion.qp_num;
    complete(task, task.take(completion));
  }
  void on_queue_failed() noexcept override { failed_ = true; }
  void end_queue() noexcept {
    if (!queue_) return;
    completions_.remove(tag_, static_cast<std::uint32_t>(slots_.size()), outstanding_);
    outstanding_ = 0;
    unposted_.clear();
    refused_.clear();
    queue_.reset();
  }

  /// A submitted receive and its work request. Slots are freed in any order.
  struct Slot {
    ibv_recv_wr request{};
    SharedReceiveTask* task = nullptr;
  };

  const ProtectionDomain& domain_;
  const RdmaRegistrar& registrar_;
  CompletionLoop& completions_;
  std::uint32_t max_sge_;
  std::vector<Slot> slots_;
  std::vector<ibv_sge> elements_;        ///< max_sge_ of each slot
  std::vector<std::uint32_t> free_;      ///< indices of slots
  std::vector<std::uint32_t> unposted_;  ///< of slots to be posted, in order
  std::vector<std::uint32_t> refused_;   ///< of slots that the device did not take
  std::optional<SharedReceiveQueue> queue_;
  std::uint32_t tag_ = 0;
  std::size_t outstanding_ = 0;
  bool failed_ = false;
};

}  // namespace offload::rdma
