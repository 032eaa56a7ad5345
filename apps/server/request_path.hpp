#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/server/admission/long_requests.hpp"
#include "apps/server/admission/retry_coordinator.hpp"
#include "apps/server/admission/suspects.hpp"
#include "apps/server/client_table.hpp"
#include "apps/server/slow_requests.hpp"
#include "apps/server/view/thread_metrics.hpp"
#include "channel/requester.hpp"
#include "comch/session/worker_channel.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "kernels/services.hpp"
#include "net/output_batch.hpp"
#include "progress/engine.hpp"
#include "protocol/frame.hpp"

namespace offload::server {

/// The way of requests from clients into a channel, and of responses back. A request goes from the
/// receive buffer to its slot, short ones together with others. The frames of a batch's responses
/// go into one gathered write a client as they are, long responses from where they lie. One thread.
class RequestPath {
 public:
  struct Limits {
    std::uint32_t max_message_length;  ///< of a request, bytes
    /// The service's function: a longer response is invalid. Null for an unknown service: then the
    /// channel's limit counts.
    kernels::ResponseLength response_length = nullptr;
    std::string service{};          ///< its name, for the log
    core::Duration slow_request{};  ///< a request that takes as long is logged; 0: none
  };

  /// `engine`, `clients` and `metrics` outlive it, and so does the memory of `endpoint`, which has
  /// no other requester.
  RequestPath(progress::Engine& engine, ClientTable& clients,
              const channel::ChannelEndpoint& endpoint, const Limits& limits,
              ThreadMetrics& metrics);

  /// The channel's, to open and stop it and for a proxy of the worker.
  [[nodiscard]] channel::Requester& requester() noexcept { return requester_; }

  /// Whether requests go to the channel now; if not, clients wait. They wait at first.
  void set_open(bool open) noexcept { open_ = open; }

  /// Sets Limits::slow_request.
  void set_slow_request(core::Duration limit) noexcept { slow_.set_limit(limit, engine_->now()); }

  /// Refuses the requests that were posted `timeout` ago; 0: none.
  void refuse_overdue(core::Duration timeout);

  // After the loss of a worker. A request that was in the channel then is a suspect: it may have
  // crashed the worker, and would crash the next one.

  /// A suspect that is alone with the third worker that is lost with it is the culprit. An operator
  /// who kills two workers, one after the other, may hit the same request both times.
  static constexpr std::uint32_t kCulpritLosses = 3;

  /// Takes what is in the channel of the lost worker out of it, as suspects. But if that is a
  /// suspect that was retried, and `blame`, this request is the culprit: refuses it, drops the
  /// other requests of its client and closes the connection. Returns that client, which lives until
  /// the next round, else null. `memory`: keeps the memory of the lost worker's channel. `blame`:
  /// the worker ended by itself, and no other channel had requests with it.
  const Client* note_loss(const std::shared_ptr<const void>& memory, bool blame);
  /// Sets the suspects of paused clients aside, and takes back those of clients that no longer are.
  void hold_suspects() noexcept;
  /// Refuses the requests of paused clients that were posted or are set aside.
  void refuse_paused(protocol::Refusal reason);
  /// Returns the suspects without a response. New requests must not be posted until there are none.
  [[nodiscard]] RetryCoordinator::Suspects suspects() const noexcept {
    using State = RetryCoordinator::Suspects;
    if (suspects_.empty()) return alone_ ? State::some : State::none;
    return suspects_.front().losses + 1 < kCulpritLosses ? State::some : State::doubted;
  }
  /// Posts the next suspect if the channel is empty. `together`: also beside others, and as many as
  /// have room; but one with which two workers were lost is always alone. Returns whether it
  /// posted.
  bool retry(bool together);

  /// Since when the worker owes a response, and none has come; nothing if it owes none.
  [[nodiscard]] std::optional<core::RunTime> silent_since();
  /// The requester is with another worker, who owes nothing from before now.
  void note_new_worker() noexcept { last_response_ = engine_->run_time(); }

  /// From now on requests are answered with the error `reason`, those that the worker has not
  /// answered as well; none: they go to the channel again.
  void set_refusal(std::optional<protocol::Refusal> reason);

  // Called by a round of the ClientTable.

  /// Whether a request would be taken: it fits into the channel, or is refused.
  [[nodiscard]] bool has_room() const noexcept {
    return (open_ && !requester_.full()) || refusal_.has_value();
  }
  /// Takes the whole frames that came. False if some are left because the channel is full.
  bool take_frames(Client& client);
  void finish(Client& client);

  /// Must be called after a round with work: wakes the worker for posted requests, and sends
  /// refusals.
  void end_round();

  /// Called with each response, or those of one batch to one client, in turns of the engine.
  /// deliver() must follow.
  void on_response(channel::PostRecvTask& task);
  /// For the requester: what a response to a request of `length` may have.
  [[nodiscard]] std::uint32_t longest_response(std::uint32_t length) const {
    return limits_.response_length != nullptr ? limits_.response_length(length)
                                              : std::max(length, requester_.max_response());
  }
  /// Sends the responses that came and frees their slots. Returns whether there were any.
  bool deliver();

  // For the log.
  [[nodiscard]] std::uint64_t answered() const noexcept { return answered_; }
  /// Returns the number of good answers.
  [[nodiscard]] std::uint64_t answered_well() const noexcept { return answered_ - failed_; }
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }

 private:
  /// The times of a request that was posted and whose answer has not come.
  struct Sample {
    core::TimePoint began;
    core::TimePoint whole;
    core::TimePoint posted;
    core::RunTime posted_at;  ///< the same, by which the request is known
    std::uint32_t length;
    core::TimePoint seen = {};  ///< the response
  };

  bool forward(Client& client, std::span<const std::byte> payload, bool first);
  bool take_frames(Client& client, std::uint64_t& taken);
  void disconnect(Client& client, protocol::Refusal reason);
  void append_error(Client& client, protocol::Refusal reason);
  void count_refusal(protocol::Refusal reason) noexcept;
  void begin_sample(const Client& client, std::size_t length, bool first) noexcept;
  [[nodiscard]] core::TimePoint time_of(net::WallTime came) noexcept;
  [[nodiscard]] core::TimePoint arrival_of(const Client& client, bool first) noexcept;
  void note_arrival(const Client& client, bool first) noexcept;
  void note_refusal(const Client& client, std::size_t length, bool first) noexcept;
  void find_sample(const channel::PostRecvTask& task) noexcept;
  void record_sample() noexcept;
  void give_up(channel::RequestTask& request, protocol::Refusal reason);
  void give_up(const Suspects::Request& request, protocol::Refusal reason);
  void give_up(Client& client, protocol::Refusal reason);
  void close_culprit(Client& client);
  /// For a frame in output_, or a piece.
  void make_room() {
    if (output_.full()) send_touched();
  }
  void touch(Client& client) {
    if (client.connection().chain().empty()) touched_.push_back(&client);
  }
  void send_touched();

  progress::Engine* engine_;
  ClientTable* clients_;
  ThreadMetrics* metrics_;
  Limits limits_;
  channel::Requester requester_;
  Suspects suspects_;
  Suspects held_;                    ///< of paused clients
  bool alone_ = false;               ///< the only request in the channel is a suspect
  std::uint32_t losses_ = 0;         ///< of the suspect that was posted last: workers
  std::uint64_t retried_until_ = 0;  ///< the requester's posted(), right after that one
  LongRequests long_requests_;
  net::OutputBatch output_;
  std::vector<Client*> touched_;                    ///< have output in output_
  channel::PostRecvTask* last_received_ = nullptr;  ///< not released yet
  std::optional<protocol::Refusal> refusal_;        ///< of all requests
  bool open_ = false;
  core::RunTime last_response_;
  std::uint64_t answered_ = 0;
  std::uint64_t failed_ = 0;  ///< of them
  std::uint64_t refused_ = 0;
  SlowRequests slow_;
  // Both clocks, of this turn; {} before the first use.
  core::TimePoint turn_{};
  core::TimePoint clock_now_{};
  net::WallTime wall_now_{};
  std::vector<Sample> sampled_;   ///< by the request's number: those that are under way
  std::optional<Sample> sample_;  ///< of a response to write in this turn
};

}  // namespace offload::server
