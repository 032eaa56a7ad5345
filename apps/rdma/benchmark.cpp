#include "apps/rdma/benchmark.hpp"

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

Benchmark::Benchmark(Environment& environment, const Options& options, const Endpoints& endpoints,
                     std::uint32_t size, const Variant& variant)
    : environment_(environment),
      options_(options),
      endpoints_(endpoints),
      size_(size),
      variant_(variant),
      begun_(endpoints.size()) {
  result_.name = *variant.name == '\0' ? name_of(options.operation) : variant.name;
  result_.size = size;
  result_.operations = options.iterations * endpoints.size();
}

Result Benchmark::run() {
  prepare();
  for (const auto& endpoint : endpoints_) {
    endpoint->set_batch(variant_.batch);
    endpoint->sync();
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
  environment_.set_event_driven(options_.event_driven || is_passive());
  for (const auto& endpoint : endpoints_) endpoint->sync();
  environment_.set_event_driven(options_.event_driven);
  look_back();
  return std::move(result_);
}

bool Benchmark::is_passive() const noexcept {
  if (reaches(options_.operation)) return !is_requester();
  return options_.operation == Operation::write && options_.in_flight != 1 && !begins();
}

/// What the peer will write to, without traces of what was before; or what it will read.
void Benchmark::prepare() {
  for (const auto& endpoint : endpoints_) {
    if (options_.operation == Operation::sync_event) endpoint->event().set(0);
    for (std::size_t slot = 0; slot < endpoint->incoming_slots(); ++slot) {
      const auto bytes = endpoint->incoming(slot).first(size_);
      if (reaches(options_.operation)) {
        make(bytes, *endpoint, is_requester(), slot);
      } else {
        std::fill(bytes.begin(), bytes.end(), std::byte{0});
      }
    }
  }
}

void Benchmark::ping_pong() {
  for (std::uint64_t i = 0; i < options_.iterations; ++i) {
    for (const auto& endpoint : endpoints_) {
      if (begins()) post(*endpoint, i);
      rdma::Receive* const message = await(*endpoint, i);
      const auto time = Clock::now() - begun_[endpoint->number()];
      accept(*endpoint, i, message);
      if (!begins()) post(*endpoint, i);
      // What the peer does not wait for comes last. Of the answering end, from its last answer on.
      if (begins() || i != 0) result_.latency.record(time / 2);
      if (message != nullptr) endpoint->give_back(*message);
    }
  }
}

void Benchmark::stream_out() {
  for (std::uint64_t i = 0; i < options_.iterations; ++i) {
    for (const auto& endpoint : endpoints_) post(*endpoint, i);
  }
  for (const auto& endpoint : endpoints_) endpoint->wait_completed(endpoint->submitted());
}

void Benchmark::stream_in() {
  for (std::uint64_t i = 0; i < options_.iterations; ++i) {
    for (const auto& endpoint : endpoints_) {
      rdma::Receive* const message = await(*endpoint, i);
      accept(*endpoint, i, message);
      endpoint->give_back(*message);
    }
  }
}

void Benchmark::reach_all() {
  const std::uint64_t depth = options_.in_flight;
  for (std::uint64_t i = 0; i < options_.iterations + depth; ++i) {
    for (const auto& endpoint : endpoints_) {
      if (i >= depth && i - depth < options_.iterations) finish_reach(*endpoint, i - depth);
      if (i >= options_.iterations) continue;
      endpoint->room();
      begun_[endpoint->number()] = Clock::now();
      reach(*endpoint, i);
    }
  }
}

/// A read takes from one slot more than this end has, so that what comes to one changes. An atomic
/// finds the word that the one before in its slot has made.
void Benchmark::reach(Endpoint& endpoint, std::uint64_t iteration) {
  const std::uint64_t depth = options_.in_flight;
  if (options_.operation == Operation::read) return endpoint.read(iteration % (depth + 1), size_);
  const std::uint64_t before = word(endpoint, iteration);
  const std::uint64_t after = word(endpoint, iteration + depth);
  if (variant_.work == Variant::Work::swap) {
    endpoint.compare_and_swap(iteration % depth, before, after);
  } else {
    endpoint.fetch_and_add(iteration % depth, after - before);
  }
}

void Benchmark::finish_reach(Endpoint& endpoint, std::uint64_t iteration) {
  // Those after it may be under way.
  const auto later = std::min<std::uint64_t>(options_.iterations - iteration, options_.in_flight);
  const std::uint64_t number = endpoint.submitted() - later;
  endpoint.wait_completed(number + 1);
  if (options_.in_flight == 1) result_.latency.record(Clock::now() - begun_[endpoint.number()]);
  const bool read = options_.operation == Operation::read;
  check(endpoint.outgoing(number).first(size_), endpoint, false,
        read ? iteration % (std::uint64_t{options_.in_flight} + 1) : iteration);
}

std::uint64_t Benchmark::word(const Endpoint& endpoint, std::uint64_t iteration) const noexcept {
  std::array<std::byte, sizeof(std::uint64_t)> bytes;
  fill(bytes, {options_.seed, endpoint.number(), false, iteration});
  return std::bit_cast<std::uint64_t>(bytes);
}

/// What could not be looked at while it went on: what a stream of writes left, what atomics made,
/// and that reads have changed nothing.
void Benchmark::look_back() {
  if (!is_passive()) return;
  const bool read = options_.operation == Operation::read;
  for (const auto& endpoint : endpoints_) {
    if (options_.operation == Operation::atomic) {
      look_at_words(*endpoint);
      continue;
    }
    const std::uint64_t slots = endpoint->incoming_slots();
    const std::uint64_t count = read ? slots : std::min(slots, options_.iterations);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t iteration = read ? i : options_.iterations - 1 - i;
      check(endpoint->incoming(iteration % slots).first(size_), *endpoint, !read, iteration);
    }
  }
}

void Benchmark::look_at_words(Endpoint& endpoint) {
  const std::uint64_t depth = options_.in_flight;
  for (std::uint64_t slot = 0; slot < depth; ++slot) {
    const std::uint64_t done = (options_.iterations + depth - 1 - slot) / depth;
    check(endpoint.incoming(slot).first(size_), endpoint, false, slot + done * depth);
  }
}

void Benchmark::post(Endpoint& endpoint, std::uint64_t iteration) {
  make(endpoint.room().first(size_), endpoint, is_requester(), iteration);
  std::optional<std::uint32_t> immediate;
  if (has_immediate(options_.operation)) immediate = immediate_of(iteration);
  begun_[endpoint.number()] = Clock::now();
  if (writes(options_.operation)) {
    endpoint.write(iteration % endpoint.incoming_slots(), size_, immediate);
  } else {
    endpoint.send(size_, immediate);
  }
}

rdma::Receive* Benchmark::await(Endpoint& endpoint, std::uint64_t iteration) {
  if (options_.operation != Operation::write) return &endpoint.receive();
  // A write puts its bytes in order, the last one last, with every card that is known: perftest
  // relies on it too. Acquire: pairs with the card.
  const auto* const last = reinterpret_cast<const std::uint8_t*>(
      &endpoint.incoming(iteration % endpoint.incoming_slots())[size_ - 1]);
  environment_.wait([&] { return __atomic_load_n(last, __ATOMIC_ACQUIRE) == last_byte(iteration); },
                    "a write of the peer", kPeerLookInterval);
  return nullptr;
}

void Benchmark::accept(Endpoint& endpoint, std::uint64_t iteration, rdma::Receive* message) {
  const auto slot = endpoint.incoming(iteration % endpoint.incoming_slots()).first(size_);
  if (message == nullptr) return check(slot, endpoint, !is_requester(), iteration);
  if (message->length() != size_) {
    wrong(iteration, fmt::format("{} bytes came, not {}", message->length(), size_));
  }
  std::optional<std::uint32_t> immediate;
  if (has_immediate(options_.operation)) immediate = immediate_of(iteration);
  if (message->immediate() != immediate) wrong(iteration, "the immediate is another");
  check(writes(options_.operation) ? slot : message->destination->data(), endpoint, !is_requester(),
        iteration);
}

void Benchmark::make(std::span<std::byte> message, const Endpoint& endpoint, bool from_requester,
                     std::uint64_t iteration) const {
  if (options_.verify) {
    fill(message, {options_.seed, endpoint.number(), from_requester, iteration});
  } else {
    message.back() = std::byte{last_byte(iteration)};
  }
}

void Benchmark::check(std::span<const std::byte> message, const Endpoint& endpoint,
                      bool from_requester, std::uint64_t iteration) {
  if (!options_.verify) return;
  const auto mismatch =
      find_mismatch(message, {options_.seed, endpoint.number(), from_requester, iteration});
  if (mismatch) {
    wrong(iteration,
          fmt::format("connection {}, offset {}: expected {:#04x}, got {:#04x}", endpoint.number(),
                      mismatch->offset, mismatch->expected, mismatch->got));
  }
  ++result_.checked;
}

void Benchmark::wrong(std::uint64_t iteration, const std::string& what) const {
  throw core::Error(core::ErrorCode::unexpected,
                    fmt::format("wrong data: {}, {} bytes, iteration {}: {}",
                                name_of(options_.operation), size_, iteration, what));
}

}  // namespace offload::rdma_tool
