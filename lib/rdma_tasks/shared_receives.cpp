#include "rdma_tasks/shared_receives.hpp"

#include <numeric>
#include <utility>

#include "rdma_tasks/work_request.hpp"

namespace offload::rdma {

using core::ErrorCode;
using core::Status;

SharedReceives::SharedReceives(const ProtectionDomain& domain, const RdmaRegistrar& registrar,
                               CompletionLoop& completions, std::uint32_t max_wr,
                               std::uint32_t max_sge, std::string name)
    : Context(std::move(name), Turns::on_request),
      domain_(domain),
      registrar_(registrar),
      completions_(completions),
      max_sge_(max_sge),
      slots_(max_wr),
      elements_(std::size_t{max_wr} * max_sge) {
  if (elements_.empty()) {
    throw core::Error(ErrorCode::invalid_value, "'" + this->name() + "': it needs a receive");
  }
  free_.reserve(max_wr);
  unposted_.reserve(max_wr);
  refused_.reserve(max_wr);
}

SharedReceives::~SharedReceives() {
  end();
}

progress::Context::Step SharedReceives::on_start() {
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

Status SharedReceives::on_submit(progress::Task& submitted) noexcept {
  auto& task = static_cast<SharedReceiveTask&>(submitted);
  if (failed_) return ErrorCode::driver;
  if (free_.empty()) return ErrorCode::full;
  const std::uint32_t number = free_.back();
  Slot& slot = slots_[number];
  const auto sg_list = std::span(elements_).subspan(std::size_t{number} * max_sge_, max_sge_);
  slot.request = {};
  slot.request.wr_id = std::uint64_t{tag_} << 32 | number;
  slot.request.sg_list = sg_list.data();
  std::uint64_t length = 0;
  const Status status =
      scatter(registrar_, task.destination, kMaxMessage, sg_list, slot.request.num_sge, length);
  if (!status.ok()) return status;
  task.clear();
  slot.task = &task;
  free_.pop_back();
  unposted_.push_back(number);
  return {};
}

void SharedReceives::on_flush() noexcept {
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
bool SharedReceives::on_poll(std::size_t most) {
  std::size_t ended = 0;
  for (; ended < most && !refused_.empty(); ++ended) {
    const std::uint32_t number = refused_.back();
    refused_.pop_back();
    free_.push_back(number);
    complete(*std::exchange(slots_[number].task, nullptr), ErrorCode::driver);
  }
  if (!refused_.empty()) request_turn();
  return ended != 0;
}

core::Duration SharedReceives::arm() {
  return refused_.empty() ? core::Duration::max() : core::Duration{};
}

void SharedReceives::on_completion(std::uint32_t number, const ibv_wc& completion) {
  if (number >= slots_.size() || slots_[number].task == nullptr) return;
  SharedReceiveTask& task = *std::exchange(slots_[number].task, nullptr);
  free_.push_back(number);
  --outstanding_;
  completions_.on_completed(1);
  task.qp_num_ = completion.qp_num;
  complete(task, task.take(completion));
}

progress::Context::Step SharedReceives::on_stop() noexcept {
  end_queue();
  return Step::done;
}

void SharedReceives::end_queue() noexcept {
  if (!queue_) return;
  completions_.remove(tag_, static_cast<std::uint32_t>(slots_.size()), outstanding_);
  outstanding_ = 0;
  unposted_.clear();
  refused_.clear();
  queue_.reset();
}

}  // namespace offload::rdma
