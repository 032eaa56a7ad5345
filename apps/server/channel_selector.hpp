#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "channel/requester.hpp"
#include "comch/proxy/worker_proxy.hpp"
#include "comch/session/worker_channel.hpp"

namespace offload::server {

/// Selects the worker of an I/O thread's requester. Each attached worker has a channel for it; the
/// control thread says which one to use. The requester moves away from a worker that is attached
/// once that has answered all requests, and from one that is gone immediately, with the unanswered
/// requests. Only for that thread.
class ChannelSelector {
 public:
  /// `requester` outlives it and is in the memory of `first`.
  ChannelSelector(channel::Requester& requester, std::shared_ptr<comch::WorkerChannel> first);

  /// A worker is there.
  void add(std::shared_ptr<comch::WorkerChannel> channel);
  /// It is gone: nothing that it writes is read any more.
  void remove(comch::WorkerId worker);
  /// Sets the worker to use; 0: none.
  void select(comch::WorkerId worker) noexcept { selected_ = worker; }

  /// Moves the requester if it must move and can. Must be called with all responses released.
  /// Returns whether it moved.
  bool progress();

  /// The worker that the requester is with; 0: none.
  [[nodiscard]] comch::WorkerId serving() const noexcept { return serving_; }
  /// In whose memory the requester is; that worker may be gone.
  [[nodiscard]] const std::shared_ptr<comch::WorkerChannel>& channel() const noexcept {
    return current_->channel;
  }
  /// Whether requests may be posted: not without a worker, nor while the requester must leave it.
  [[nodiscard]] bool ready() const noexcept { return serving_ != 0 && serving_ == selected_; }

  /// A worker whose channel cannot be used any more, and why. Told once.
  struct Loss {
    comch::WorkerId worker;
    std::string reason;
  };
  [[nodiscard]] std::optional<Loss> take_loss();
  /// Whether take_loss() would tell of the worker that serves, or of one that was to.
  [[nodiscard]] bool has_loss() const noexcept {
    return loss_.has_value() ||
           (!current_->lost && current_->proxy && current_->proxy->failure() != nullptr);
  }

 private:
  struct Line {
    std::shared_ptr<comch::WorkerChannel> channel;
    std::uint64_t next = 0;                       ///< where the requester goes on
    std::unique_ptr<comch::WorkerProxy> proxy{};  ///< once used, of a worker on another machine
    bool lost = false;
  };

  [[nodiscard]] std::shared_ptr<Line> find(comch::WorkerId worker) const;
  void move_to(const std::shared_ptr<Line>& line);

  channel::Requester* requester_;
  std::vector<std::shared_ptr<Line>> lines_;
  std::shared_ptr<Line>
      current_;  ///< in whose memory the requester is, even if that worker is gone
  comch::WorkerId serving_ = 0;
  comch::WorkerId selected_ = 0;
  std::optional<Loss> loss_;
};

}  // namespace offload::server
