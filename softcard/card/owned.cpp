#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "softcard/card/card.hpp"

/// Objects whose owners are processes: they come and go one by one, and their states change.
namespace offload::rdma::model {
namespace {

constexpr auto kUnitOfTimeout = std::chrono::nanoseconds(4096);

/// Returns how long a queue pair tries to reach its peer; none: for ever.
std::optional<Clock::duration> patience_of(std::uint8_t timeout, std::uint8_t retries) {
  if (timeout == 0) return std::nullopt;
  return (retries + 1) * (kUnitOfTimeout * (std::int64_t{1} << timeout));
}

/// Returns the doorbell for as much as the record says.
std::uint64_t doorbell_by_record(const kernels::rdma::SendQueue& queue) {
  const std::uint32_t record = __atomic_load_n(queue.record, __ATOMIC_ACQUIRE);
  const auto entry = kernels::rdma::doorbell_of(queue, kernels::rdma::big_endian(record));
  return std::uint64_t{entry.words[1]} << 32 | entry.words[0];
}

}  // namespace

Completions& Card::add_completions(const kernels::rdma::CompletionQueue& queue,
                                   const Completions::Options& options) {
  return completions_.emplace(options.number, Completions(queue, options)).first->second;
}

Receives& Card::add_receives(std::uint32_t number, const ReceiveLayout& layout) {
  return shared_.emplace(number, Receives(layout)).first->second;
}

void Card::add(const PairLayout& layout) {
  kernels::rdma::SendQueue sends{};
  sends.ring = layout.sends;
  sends.number = layout.number;
  sends.record = layout.send_record;
  sends.has_record = layout.has_record;
  auto rung = std::make_unique<std::uint64_t>(0);
  sends.doorbell = rung.get();
  std::unique_ptr<Receives> own;
  Receives* all = nullptr;
  if (layout.receives.count != 0) {
    own = std::make_unique<Receives>(layout.receives);
    all = own.get();
  }
  if (layout.shared_receives != 0) all = &shared_.at(layout.shared_receives);
  QueuePair pair{layout.number,
                 std::move(rung),
                 sends,
                 layout.format,
                 EntryReader(sends, layout.format, reading_),
                 std::move(own),
                 layout.receives,
                 all,
                 layout.shared_receives,
                 &completions_.at(layout.sent),
                 &completions_.at(layout.came),
                 layout.domain};
  pair.rights = {};
  pair.state = State::reset;
  pair.is_owned = true;
  pair.is_unreliable = layout.is_unreliable;
  pair.may_wait = layout.may_wait;
  pair.owner = layout.owner;
  pair.receives_own = layout.receives_own;
  pairs_.emplace(layout.number, std::move(pair));
}

/// All that is late comes at once.
void Card::place_all() {
  for (auto& [number, pair] : pairs_) {
    while (place_one(pair)) {
    }
  }
  for (auto& [number, queue] : completions_) {
    while (!queue.late.empty()) write_oldest_late(queue);
  }
}

void Card::remove_memory(std::uint32_t key) {
  place_all();
  regions_.remove(key);
}

void Card::remove(std::uint32_t number) {
  place_all();
  pairs_.erase(number);
}

/// Returns a queue pair whose doorbells are read now, or null.
Card::QueuePair* Card::sender_at(std::uint32_t number) {
  const auto found = pairs_.find(number);
  if (found == pairs_.end() || found->second.sends.ring.blocks == 0) return nullptr;
  QueuePair& pair = found->second;
  return pair.state == State::reset || pair.entries.has_fault() ? nullptr : &pair;
}

bool Card::ring(std::uint32_t number, std::uint64_t doorbell, SendRegister where) {
  QueuePair* const pair = sender_at(number);
  if (pair == nullptr) return true;
  if (pair->sends.has_record != (where == SendRegister::with_record)) return false;
  ring(*pair, doorbell);
  return true;
}

void Card::ring(std::uint32_t number) {
  QueuePair* const pair = sender_at(number);
  if (pair == nullptr || !pair->sends.has_record) return;
  fetch(std::span(pair->sends.record, 1));
  ring(*pair, doorbell_by_record(pair->sends));
}

/// Reads the entries from position `from` to the published end.
void Card::fetch_entries(const QueuePair& pair, std::uint64_t from) const {
  const auto& ring = pair.sends.ring;
  while (from != pair.entries.end()) {
    const std::uint64_t at = from % ring.blocks;
    const std::uint64_t count = std::min(pair.entries.end() - from, ring.blocks - at);
    constexpr std::uint64_t kSegments = kernels::rdma::kSegmentsPerBlock;
    fetch(std::span(ring.segments + at * kSegments, count * kSegments));
    from += count;
  }
}

/// Returns the number of receives to take, the oldest of which has been read.
std::uint32_t Card::look_for_receives(Receives& receives) const {
  fetch(receives.record());
  const std::uint32_t count = receives.look();
  if (count != 0) fetch(receives.oldest());
  return count;
}

void Card::ring(QueuePair& pair, std::uint64_t doorbell) {
  // Any value that differs from the one before is a doorbell, and the lowest byte means nothing.
  constexpr std::uint64_t kTurn = std::uint64_t{0xff} << 24;
  const std::uint64_t turn = ~*pair.rung & kTurn;
  *pair.rung = (doorbell & ~kTurn) | turn;
  if (pair.sends.has_record) fetch(std::span(pair.sends.record, 1));
  const std::uint64_t known = pair.entries.end();
  pair.entries.look();
  if (!pair.entries.has_fault()) fetch_entries(pair, known);
  note_fault(pair);
}

std::string Card::describe(std::uint32_t number) const {
  const QueuePair& pair = pairs_.at(number);
  std::string text = "state " + std::to_string(static_cast<int>(pair.state)) + ", send blocks " +
                     std::to_string(pair.entries.next()) + " of " +
                     std::to_string(pair.entries.end()) + ", completions of sends " +
                     std::to_string(pair.sent->written());
  if (pair.receives != nullptr) {
    text += ", receives " + std::to_string(pair.receives->taken()) + " of " +
            std::to_string(pair.receives->posted()) + ", completions of receives " +
            std::to_string(pair.came->written());
  }
  if (pair.rnr_tries != 0) text += ", attempts without a receive " + std::to_string(pair.rnr_tries);
  if (pair.exchange) text += ", waits for an answer";
  const std::string fault = pair.entries.fault();
  return fault.empty() ? text : text + ", " + fault;
}

void Card::change(std::uint32_t number, const PairChange& change) {
  QueuePair& pair = pairs_.at(number);
  if (pair.state == State::error && change.state && *change.state != State::error &&
      *change.state != State::reset) {
    throw core::Error(core::ErrorCode::invalid_value,
                      "queue pair " + std::to_string(number) +
                          " is in error; the only changes of its state are to reset and to error");
  }
  const auto set = [](auto& field, const auto& value) {
    if (value) field = *value;
  };
  set(pair.rights, change.rights);
  set(pair.peer, change.peer);
  if (change.remote) {
    pair.remote = *change.remote == 0 ? std::nullopt : std::optional(*change.remote);
  }
  set(pair.next_psn, change.send_psn);
  set(pair.expected_psn, change.receive_psn);
  set(pair.retries, change.retries);
  set(pair.rnr_retries, change.rnr_retries);
  set(pair.timeout, change.timeout);
  set(pair.rnr_timer, change.rnr_timer);
  pair.patience = patience_of(pair.timeout, pair.retries);
  if (!change.state || *change.state == pair.state) return;
  if (*change.state == State::reset) place_all();
  if (*change.state == State::error) {
    const bool shares = pair.shared != 0;
    pair.state = State::error;
    pair.not_before = {};
    if (shares && events_ != nullptr) events_->pair_event(number, PairEvent::last_receive);
    return;
  }
  pair.state = *change.state;
  if (pair.state == State::drained && events_ != nullptr) {
    events_->pair_event(number, PairEvent::sends_drained);
  }
  if (pair.state != State::reset) return;
  pair.entries = EntryReader(pair.sends, pair.format, reading_);
  if (pair.own != nullptr) *pair.own = Receives(pair.own_layout);
  pair.peer = 0;
  pair.has_written_fault = false;
  pair.rnr_tries = 0;
  pair.not_before = {};
  pair.away_since.reset();
  pair.remote.reset();
  pair.exchange.reset();
  pair.arrival = {};
  pair.filling.reset();
  pair.unplaced.clear();
  pair.late_sent.clear();
  pair.is_placing = false;
}

}  // namespace offload::rdma::model
