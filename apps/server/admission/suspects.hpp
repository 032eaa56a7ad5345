#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "channel/requester.hpp"
#include "core/clock.hpp"

namespace offload::server {

class Client;

/// The requests that were in a channel when its worker was lost, in their order. One of them may
/// have crashed it. They are held back here until they are posted again. One thread.
class Suspects {
 public:
  struct Request {
    Client* client;
    core::Duration age;    ///< how long it was with workers
    std::uint32_t losses;  ///< of workers, while it was in the channel
    std::span<const std::byte> payload;
    std::vector<std::byte> copy;         ///< of the payload, if it is short
    std::shared_ptr<const void> memory;  ///< in which a long payload lies
  };

  /// Takes all requests that `requester` has posted, flushed and has no response to, in front of
  /// those that are here; there they are given up. `memory` keeps the memory that the requester is
  /// in. `losses`: of workers with each of these. Throws std::bad_alloc; then nothing has changed.
  void take(channel::Requester& requester, const std::shared_ptr<const void>& memory,
            std::uint32_t losses, core::RunTime now);

  [[nodiscard]] bool empty() const noexcept { return requests_.empty(); }
  [[nodiscard]] const Request& front() const noexcept { return requests_.front(); }
  void pop_front() noexcept { requests_.pop_front(); }
  /// Removes those for which `predicate`(const Request&) is true, oldest first.
  template <class Predicate>
  void remove_if(Predicate predicate) {
    requests_.remove_if(predicate);
  }
  /// Moves those for which `predicate`(const Request&) is true to `to`, in their order and in front
  /// of those that are there.
  template <class Predicate>
  void move_if(Suspects& to, Predicate predicate) noexcept {
    const auto first = to.requests_.begin();
    for (auto next = requests_.begin(); next != requests_.end();) {
      const auto each = next++;
      if (predicate(*each)) to.requests_.splice(first, requests_, each);
    }
  }

 private:
  std::list<Request> requests_;
};

}  // namespace offload::server
