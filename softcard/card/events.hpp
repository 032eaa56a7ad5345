#pragma once

#include <cstdint>

namespace offload::rdma::model {

/// The states of a queue pair.
enum class State : std::uint8_t { reset, init, receiving, sending, drained, error };

/// An event of a queue pair that its owner did not cause by a call.
enum class PairEvent : std::uint8_t {
  none,
  fatal,          ///< an entry or a record breaks the format, or a completion had no room
  access_error,   ///< the peer used a key or a range that it must not
  request_error,  ///< the peer sent something that is invalid
  last_receive,   ///< in error, it takes no more of the receives that it shares
  sends_drained,
};

/// The listener of a card, which is called on the card's thread.
class Events {
 public:
  Events() = default;
  Events& operator=(Events&&) = delete;
  virtual ~Events() = default;

  virtual void pair_event(std::uint32_t pair, PairEvent event) = 0;
  virtual void state_changed(std::uint32_t pair, State state) = 0;
  virtual void completions_in_error(std::uint32_t completions) = 0;
  virtual void limit_reached(std::uint32_t receives) = 0;
};

}  // namespace offload::rdma::model
