#include "apps/rdma/trial.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>

namespace offload::rdma_tool {
namespace {

using core::Clock;

/// Immediates are iterations; those from 2^31 on are controls.
constexpr std::uint64_t kImmediates = std::uint64_t{1} << 31;

std::uint32_t immediate_of(std::uint64_t iteration) noexcept {
  return static_cast<std::uint32_t>(iteration % kImmediates);
}

bool has_immediate(Operation operation) noexcept {
  return operation == Operation::send_imm || operation == Operation::write_imm;
}

bool writes(Operation operation) noexcept {
  return operation == Operation::write || operation == Operation::write_imm;
}

/// What only one end works on, and the other end does not answer.
bool reaches(Operation operation) noexcept {
  return operation == Operation::read || operation == Operation::atomic;
}

}  // namespace

std::vector<Variant> variants_of(const Options& options) {
  using Work = Variant::Work;
  switch (options.operation) {
    case Operation::atomic:
      return {{"compare-and-swap", options.batch, Work::swap},
              {"fetch-and-add", options.batch, Work::add}};
    case Operation::sync_event:
      return {{"set", 1, Work::set}, {"add", 1, Work::add}, {"get", 1, Work::get}};
    case Operation::burst: return {{"singles", 1}, {"batches", options.batch}};
    case Operation::ordered: return {{"ordered by the engine", 1}};
    default: return {{"", options.batch}};
  }
}

Trial::Trial(Stage& stage, const Options& options, const Wires& wires, std::uint32_t size,
             const Variant& variant)
    : stage_(stage),
      options_(options),
      wires_(wires),
      size_(size),
      variant_(variant),
      begun_(wires.size()) {
  result_.name = *variant.name == '\0' ? name_of(options.operation) : variant.name;
  result_.size = size;
  result_.operations = options.iterations * wires.size();
}

Result Trial::run() {
  prepare();
  for (const auto& wire : wires_) {
    wire->set_batch(variant_.batch);
    wire->sync();
  }
  const auto start = Clock::now();
  if (options_.operation == Operation::sync_event) {
    is_requester() ? publish() : subscribe();
  } else if (options_.operation == Operation::ordered) {
    is_requester() ? read_then_send() : expect_send_of_read();
  } else if (is_passive()) {
    // The next sync tells that it is over.
  } else if (reaches(options_.operation)) {
    reach_all();
  } else if (options_.in_flight == 1) {
    ping_pong();
  } else if (begins()) {
    stream_out();
  } else {
    stream_in();
  }
  if (!is_passive()) result_.duration = Clock::now() - start;
  // Who has nothing to do leaves its processor to those who have.
  stage_.set_event_driven(options_.event_driven || is_passive());
  for (const auto& wire : wires_) wire->sync();
  stage_.set_event_driven(options_.event_driven);
  look_back();
  return std::move(result_);
}

bool Trial::is_passive() const noexcept {
  if (reaches(options_.operation)) return !is_requester();
  return options_.operation == Operation::write && options_.in_flight != 1 && !begins();
}

/// What the peer will write to, without traces of what was before; or what it will read.
void Trial::prepare() {
  for (const auto& wire : wires_) {
    if (options_.operation == Operation::sync_event) wire->event().set(0);
    for (std::size_t slot = 0; slot < wire->incoming_slots(); ++slot) {
      const auto bytes = wire->incoming(slot).first(size_);
      if (reaches(options_.operation)) {
        make(bytes, *wire, is_requester(), slot);
      } else {
        std::fill(bytes.begin(), bytes.end(), std::byte{0});
      }
    }
  }
}

void Trial::ping_pong() {
  for (std::uint64_t i = 0; i < options_.iterations; ++i) {
    for (const auto& wire : wires_) {
      if (begins()) post(*wire, i);
      rdma::Receive* const message = await(*wire, i);
      const auto time = Clock::now() - begun_[wire->number()];
      accept(*wire, i, message);
      if (!begins()) post(*wire, i);
      // What the peer does not wait for comes last. Of the answering end, from its last answer on.
      if (begins() || i != 0) result_.latency.record(time / 2);
      if (message != nullptr) wire->give_back(*message);
    }
  }
}

void Trial::stream_out() {
  for (std::uint64_t i = 0; i < options_.iterations; ++i) {
    for (const auto& wire : wires_) post(*wire, i);
  }
  for (const auto& wire : wires_) wire->wait_completed(wire->submitted());
}

void Trial::stream_in() {
  for (std::uint64_t i = 0; i < options_.iterations; ++i) {
    for (const auto& wire : wires_) {
      rdma::Receive* const message = await(*wire, i);
      accept(*wire, i, message);
      wire->give_back(*message);
    }
  }
}

void Trial::reach_all() {
  const std::uint64_t depth = options_.in_flight;
  for (std::uint64_t i = 0; i < options_.iterations + depth; ++i) {
    for (const auto& wire : wires_) {
      if (i >= depth && i - depth < options_.iterations) finish_reach(*wire, i - depth);
      if (i >= options_.iterations) continue;
      wire->room();
      begun_[wire->number()] = Clock::now();
      reach(*wire, i);
    }
  }
}

/// A read takes from one slot more than this end has, so that what comes to one changes. An atomic
/// finds the word that the one before in its slot has made.
void Trial::reach(Wire& wire, std::uint64_t iteration) {
  const std::uint64_t depth = options_.in_flight;
  if (options_.operation == Operation::read) return wire.read(iteration % (depth + 1), size_);
  const std::uint64_t before = word(wire, iteration);
  const std::uint64_t after = word(wire, iteration + depth);
  if (variant_.work == Variant::Work::swap) {
    wire.compare_and_swap(iteration % depth, before, after);
  } else {
    wire.fetch_and_add(iteration % depth, after - before);
  }
}

void Trial::finish_reach(Wire& wire, std::uint64_t iteration) {
  // Those after it may be under way.
  const auto later = std::min<std::uint64_t>(options_.iterations - iteration, options_.in_flight);
  const std::uint64_t number = wire.submitted() - later;
  wire.wait_completed(number + 1);
  if (options_.in_flight == 1) result_.latency.record(Clock::now() - begun_[wire.number()]);
  const bool read = options_.operation == Operation::read;
  check(wire.outgoing(number).first(size_), wire, false,
        read ? iteration % (std::uint64_t{options_.in_flight} + 1) : iteration);
}

std::uint64_t Trial::word(const Wire& wire, std::uint64_t iteration) const noexcept {
  std::array<std::byte, sizeof(std::uint64_t)> bytes;
  fill(bytes, {options_.seed, wire.number(), false, iteration});
  return std::bit_cast<std::uint64_t>(bytes);
}

/// What could not be looked at while it went on: what a stream of writes left, what atomics made,
/// and that reads have changed nothing.
void Trial::look_back() {
  if (!is_passive()) return;
  const bool read = options_.operation == Operation::read;
  for (const auto& wire : wires_) {
    if (options_.operation == Operation::atomic) {
      look_at_words(*wire);
      continue;
    }
    const std::uint64_t slots = wire->incoming_slots();
    const std::uint64_t count = read ? slots : std::min(slots, options_.iterations);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t iteration = read ? i : options_.iterations - 1 - i;
      check(wire->incoming(iteration % slots).first(size_), *wire, !read, iteration);
    }
  }
}

void Trial::look_at_words(Wire& wire) {
  const std::uint64_t depth = options_.in_flight;
  for (std::uint64_t slot = 0; slot < depth; ++slot) {
    const std::uint64_t done = (options_.iterations + depth - 1 - slot) / depth;
    check(wire.incoming(slot).first(size_), wire, false, slot + done * depth);
  }
}

void Trial::post(Wire& wire, std::uint64_t iteration) {
  make(wire.room().first(size_), wire, is_requester(), iteration);
  std::optional<std::uint32_t> immediate;
  if (has_immediate(options_.operation)) immediate = immediate_of(iteration);
  begun_[wire.number()] = Clock::now();
  if (writes(options_.operation)) {
    wire.write(iteration % wire.incoming_slots(), size_, immediate);
  } else {
    wire.send(size_, immediate);
  }
}

rdma::Receive* Trial::await(Wire& wire, std::uint64_t iteration) {
  if (options_.operation != Operation::write) return &wire.receive();
  // A write puts its bytes in order, the last one last, with every card that is known: perftest
  // relies on it too. Acquire: pairs with the card.
  const auto* const last = reinterpret_cast<const std::uint8_t*>(
      &wire.incoming(iteration % wire.incoming_slots())[size_ - 1]);
  stage_.wait([&] { return __atomic_load_n(last, __ATOMIC_ACQUIRE) == last_byte(iteration); },
              "a write of the peer", kPeerLookInterval);
  return nullptr;
}

void Trial::accept(Wire& wire, std::uint64_t iteration, rdma::Receive* message) {
  const auto slot = wire.incoming(iteration % wire.incoming_slots()).first(size_);
  if (message == nullptr) return check(slot, wire, !is_requester(), iteration);
  if (message->length() != size_) {
    wrong(iteration, fmt::format("{} bytes came, not {}", message->length(), size_));
  }
  std::optional<std::uint32_t> immediate;
  if (has_immediate(options_.operation)) immediate = immediate_of(iteration);
  if (message->immediate() != immediate) wrong(iteration, "the immediate is another");
  check(writes(options_.operation) ? slot : message->destination->data(), wire, !is_requester(),
        iteration);
}

void Trial::make(std::span<std::byte> message, const Wire& wire, bool from_requester,
                 std::uint64_t iteration) const {
  if (options_.verify) {
    fill(message, {options_.seed, wire.number(), from_requester, iteration});
  } else {
    message.back() = std::byte{last_byte(iteration)};
  }
}

void Trial::check(std::span<const std::byte> message, const Wire& wire, bool from_requester,
                  std::uint64_t iteration) {
  if (!options_.verify) return;
  const auto mismatch =
      find_mismatch(message, {options_.seed, wire.number(), from_requester, iteration});
  if (mismatch) {
    wrong(iteration,
          fmt::format("connection {}, offset {}: expected {:#04x}, got {:#04x}", wire.number(),
                      mismatch->offset, mismatch->expected, mismatch->got));
  }
  ++result_.checked;
}

void Trial::wrong(std::uint64_t iteration, const std::string& what) const {
  throw core::Error(core::ErrorCode::unexpected,
                    fmt::format("wrong data: {}, {} bytes, iteration {}: {}",
                                name_of(options_.operation), size_, iteration, what));
}

}  // namespace offload::rdma_tool
