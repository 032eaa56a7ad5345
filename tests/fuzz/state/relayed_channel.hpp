#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "channel/channel_memory.hpp"
#include "channel/requester.hpp"
#include "comch/proxy/server_proxy.hpp"
#include "comch/proxy/worker_proxy.hpp"
#include "tests/fuzz/state/fuzzed_pipe.hpp"

namespace offload::fuzz {

/// A channel whose worker is behind a FuzzedPipe: the real proxies at both ends, a requester before
/// one of them and the script's back end behind the other. It checks each answer: the reversed
/// request, or, after a lie, any answer that is not too long.
class RelayedChannel {
 public:
  static constexpr std::uint32_t kLongest = 1400;

  RelayedChannel(progress::Engine& engine, std::uint32_t depth, bool little);
  RelayedChannel(const RelayedChannel&) = delete;
  RelayedChannel& operator=(const RelayedChannel&) = delete;

  /// Returns false if the channel is full.
  bool post(std::vector<std::byte> request);
  void flush() { requester_.flush(); }
  /// Call this after a turn of the engine.
  void release();
  /// Runs one turn of the worker's end.
  void turn_worker() { server_->turn({}); }
  /// Has the back end answer one slot; returns false if there is none.
  bool serve();
  /// Has it answer the next slot with lies, whether the slot has a request or not.
  void lie(std::uint32_t length, std::uint32_t status, std::uint32_t count);

  /// Returns the middle of the connection. The caller calls distrust() before it changes anything.
  FuzzedPipe& pipe() noexcept { return *pipe_; }
  /// Marks this worker's answers from now on as possibly wrong.
  void distrust() noexcept { trusted_ = false; }
  [[nodiscard]] bool trusted() const noexcept { return trusted_; }
  /// Returns why an end regards the connection as lost; null: it does not.
  [[nodiscard]] const std::string* failure(std::size_t side) const noexcept {
    return side == 0 ? worker_->failure() : server_->failure();
  }

  /// Loses the worker and replaces it by another one, with a new connection.
  void replace();

  [[nodiscard]] std::uint64_t awaited() const noexcept { return requester_.awaited(); }

  // The requester's handler.
  void on_response(channel::PostRecvTask& task);
  [[nodiscard]] std::uint32_t longest_response(std::uint32_t length) const noexcept {
    return length;
  }

 private:
  void attach();
  void take(std::span<const std::byte> payload);

  std::uint32_t depth_;
  bool little_;
  std::vector<std::unique_ptr<channel::ChannelMemory>> memories_;  ///< the former ones as well
  channel::Requester requester_;
  std::optional<FuzzedPipe> pipe_;
  std::unique_ptr<comch::WorkerProxy> worker_;  ///< the server's end
  std::unique_ptr<comch::ServerProxy> server_;  ///< the worker's end
  std::uint64_t next_slot_ = 0;                 ///< of the back end
  bool trusted_ = true;
  std::deque<std::vector<std::byte>> requests_;  ///< that are not answered
  channel::PostRecvTask* last_ = nullptr;
};

}  // namespace offload::fuzz
