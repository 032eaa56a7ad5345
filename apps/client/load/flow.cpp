#include "apps/client/load/flow.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace offload::client {

using Ready = core::IntrusiveList<Flow>;

Flow::Flow(std::string name, std::uint32_t number, LoadShare& share)
    : share_(share),
      request_limit_(share.plan.duration || share.plan.arrivals
                         ? std::numeric_limits<std::uint64_t>::max()
                         : share.plan.requests),
      name_(std::move(name)),
      random_(number + share.plan.seed * 0x9e37'79b9'7f4a'7c15U),
      number_(number) {
  ++share_.running;
}

bool Flow::set_over() noexcept {
  if (std::exchange(over_, true)) return false;
  --share_.running;
  leave_ready();
  return true;
}

void Flow::leave_ready() noexcept {
  if (!Ready::is_linked(*this)) return;
  Ready::remove(*this);
  --share_.with_room_count;
}

/// In an open loop, the load thread is told that requests can be sent here.
void Flow::join_ready() {
  if (Ready::is_linked(*this)) return;
  share_.with_room.push_back(*this);
  ++share_.with_room_count;
}

bool Flow::fill_window() {
  while (flush()) {
    const std::uint32_t count = next_batch();
    if (count == 0) return true;
    now_ = core::Clock::now();
    if (now_ >= share_.end) {
      request_limit_ = sent_;
      return true;
    }
    start_batch(count);
  }
  return false;
}

void Flow::send_due(std::uint64_t most) {
  leave_ready();
  now_ = core::Clock::now();
  start_batch(static_cast<std::uint32_t>(std::min<std::uint64_t>(most, next_batch())));
  go_on();
}

std::uint64_t Flow::random() noexcept {
  random_ = random_ * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX generator
  return random_ >> 33;
}

std::uint32_t Flow::take_in_order(std::uint32_t count) noexcept {
  const std::uint32_t first = next_in_order_;
  next_in_order_ = (first + count) % share_.pool.size();
  return first;
}

std::uint32_t Flow::choose() noexcept {
  if (share_.plan.in_order) return take_in_order(1);
  constexpr double kDraws = std::uint64_t{1} << 31;
  const bool has_sizes = is_open_loop() && share_.plan.arrivals->has_sizes();
  const std::uint32_t size_class =
      has_sizes ? share_.pacer->next_size_class()
                : share_.pool.class_at(static_cast<double>(random()) / kDraws);
  const auto variant = static_cast<std::uint32_t>(random() % share_.pool.count_of(size_class));
  return share_.pool.first_of(size_class) + variant;
}

void Flow::begin_thinking() noexcept {
  ++thinking_;
  share_.thinking->begin(*this, now_);
}

bool Flow::count_late(const Pending& request, std::uint64_t count) {
  log(request, ErrorKind::late);
  return count_error(ErrorKind::late, 1, count,
                     [] { return "the response came after --deadline"; });
}

/// Counts what went wrong with `count` requests. Returns whether to go on, which ends here unless
/// errors are counted. `request`, `what`: for the message, which is made for the first one and for
/// the first wrong answer alone.
bool Flow::count_error(ErrorKind kind, std::uint64_t count, std::uint64_t request,
                       const Describe& what) {
  share_.interval->errors.add(kind, count);
  const bool is_first_wrong =
      kind == ErrorKind::mismatch && !std::exchange(share_.has_wrong_answer, true);
  if (share_.fault.empty() || is_first_wrong) {
    std::string& text = share_.fault.empty() ? share_.fault : share_.wrong_answer;
    text = fmt::format("{}, request {}: {}", name_, request, what());
  }
  if (!share_.plan.stop_on_error) return true;
  share_.is_stopped_by_fault = true;
  end();
  return false;
}

void Flow::add_to_log(const Pending& request, std::optional<ErrorKind> error) {
  share_.log.add({request.intended, request.sent, now_, number_,
                  share_.pool.request_length(request.number), error});
}

}  // namespace offload::client
