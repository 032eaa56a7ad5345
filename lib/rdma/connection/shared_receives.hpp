#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "progress/context.hpp"
#include "rdma/connection/completion_loop.hpp"
#include "rdma/connection/operation.hpp"
#include "rdma/verbs/registrar.hpp"
#include "rdma/verbs/shared_receive_queue.hpp"

namespace offload::rdma {

/// Receives that many connections take their messages into: whichever has one takes the next. A
/// context whose tasks are the receives; one that is done says whose message it has.
///
///     shared.connect(engine);  shared.start();
///     options.queues.shared_receives = shared.queue();   // of the connections, before they start
///
/// It starts before its connections, and stops after them: until then receives are the device's.
/// What breaks a connection takes no receive from the others; one that it had begun to fill fails.
///
/// Submission says: full; invalid_value and not_permitted as for a Connection; driver once the
/// completion queue has failed. One thread, that of its engine.
class SharedReceives final : public progress::Context, CompletionSink {
 public:
  /// For `depth` receives of at most `scatter` pieces of memory. Domain, registrar (of that domain)
  /// and loop outlive it. Throws Error (invalid_value) for nothing of either.
  SharedReceives(const ProtectionDomain& domain, const Registrar& registrar,
                 CompletionLoop& completions, std::uint32_t depth, std::uint32_t scatter = 1,
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
    return progress::Expecting::nothing;  // the completion loop expects
  }
  core::Duration arm() override;
  void on_completion(std::uint32_t number, const ibv_wc& completion) override;
  void on_queue_failed() noexcept override { failed_ = true; }
  void end_queue() noexcept;

  /// A receive, at its place for as long as it is submitted: they end in any order.
  struct Slot {
    ibv_recv_wr request{};
    SharedReceiveTask* task = nullptr;
  };

  const ProtectionDomain& domain_;
  const Registrar& registrar_;
  CompletionLoop& completions_;
  std::uint32_t scatter_;
  std::vector<Slot> slots_;
  std::vector<ibv_sge> pieces_;
  std::vector<std::uint32_t> free_;      ///< slots
  std::vector<std::uint32_t> unposted_;  ///< slots, in their order
  std::vector<std::uint32_t> refused_;   ///< slots that the device did not take
  std::optional<SharedReceiveQueue> queue_;
  std::uint32_t tag_ = 0;
  std::size_t under_way_ = 0;
  bool failed_ = false;
};

}  // namespace offload::rdma
