#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "progress/context.hpp"
#include "rdma/verbs/completion_loop.hpp"
#include "rdma/verbs/shared_receive_queue.hpp"
#include "rdma_tasks/operation.hpp"

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
                 std::string name = "shared receives");
  ~SharedReceives() override;

  /// Null while it is idle.
  [[nodiscard]] const SharedReceiveQueue* queue() const noexcept {
    return queue_ ? &*queue_ : nullptr;
  }

 private:
  Step on_start() override;
  Step on_stop() noexcept override;
  void on_abandon() noexcept override { end_queue(); }
  core::Status on_submit(progress::Task& task) noexcept override;
  void on_flush() noexcept override;
  bool on_poll(std::size_t most) override;
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::nothing;  // the completion loop does
  }
  core::Duration arm() override;
  void on_completion(std::uint32_t number, const ibv_wc& completion) override;
  void on_queue_failed() noexcept override { failed_ = true; }
  void end_queue() noexcept;

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
