#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "channel/requester.hpp"
#include "comch/proxy/worker_proxy.hpp"
#include "comch/session/worker_channel.hpp"
#include "core/error.hpp"
#include "core/process/out_of_memory.hpp"

namespace offload::server {

/// Selects the worker of an I/O thread's requester. Each attached worker has a channel for it; the
/// control thread says which one to use. The requester moves away from a worker that is attached
/// once that has answered all requests, and from one that is gone immediately, with the unanswered
/// requests. Only for that thread.
class ChannelSelector {
 public:
  /// `requester` outlives it and is in the memory of `first`.
  ChannelSelector(channel::Requester& requester, std::shared_ptr<comch::WorkerChannel> first)
      : requester_(&requester) {
    add(std::move(first));
    current_ = lines_.front();
  }

  /// A worker is there.
  void add(std::shared_ptr<comch::WorkerChannel> channel) {
    lines_.push_back(std::make_shared<Line>(Line{std::move(channel)}));
  }
  /// It is gone: nothing that it writes is read any more.
  void remove(comch::WorkerId worker) {
    if (serving_ == worker) {
      requester_->set_wakeup(channel::Wakeup::none);
      serving_ = 0;
    }
    if (current_->channel->worker == worker) current_->proxy.reset();
    std::erase_if(lines_, [&](const auto& line) { return line->channel->worker == worker; });
  }
  /// Sets the worker to use; 0: none.
  void select(comch::WorkerId worker) noexcept { selected_ = worker; }

  /// Moves the requester if it must move and can. Must be called with all responses released.
  /// Returns whether it moved.
  bool progress() {
    if (selected_ == serving_) return false;
    if (serving_ != 0) {
      if (requester_->awaited() != 0) return false;
      requester_->set_wakeup(channel::Wakeup::none);
      serving_ = 0;
    }
    const auto line = find(selected_);
    if (!line || line->lost) return selected_ == 0;
    try {
      move_to(line);
      serving_ = selected_;
    } catch (const std::exception& error) {
      line->lost = true;
      loss_ = {selected_, core::what_of(error)};
    }
    return true;
  }

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
  [[nodiscard]] std::optional<Loss> take_loss() {
    for (const auto& line : lines_) {
      if (line->lost || !line->proxy || line->proxy->failure() == nullptr) continue;
      line->lost = true;
      loss_ = {line->channel->worker, *line->proxy->failure()};
    }
    return std::exchange(loss_, std::nullopt);
  }
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

  [[nodiscard]] std::shared_ptr<Line> find(comch::WorkerId worker) const {
    const auto found = std::ranges::find_if(
        lines_, [&](const auto& line) { return line->channel->worker == worker; });
    return found != lines_.end() ? *found : nullptr;
  }
  void move_to(const std::shared_ptr<Line>& line) {
    comch::WorkerChannel& channel = *line->channel;
    const auto endpoint = channel.memory.endpoint(line->next);
    if (channel.endpoint) {
      line->proxy = std::make_unique<comch::WorkerProxy>(*requester_, endpoint,
                                                         std::exchange(channel.endpoint, {}));
    }
    if (line == current_) return requester_->set_wakeup(channel.wakeup);
    const std::uint64_t posted = requester_->slots().posted();
    requester_->move_to(endpoint, channel.wakeup);
    current_->next = posted;
    current_ = line;
  }

  channel::Requester* requester_;
  std::vector<std::shared_ptr<Line>> lines_;
  std::shared_ptr<Line>
      current_;  ///< in whose memory the requester is, even if that worker is gone
  comch::WorkerId serving_ = 0;
  comch::WorkerId selected_ = 0;
  std::optional<Loss> loss_;
};

}  // namespace offload::server
