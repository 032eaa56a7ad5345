#include "apps/rdma_tasks/benchmark.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>

#include "apps/rdma_tasks/device/path.hpp"
#include "tasks/progress/graph.hpp"

namespace offload::rdma_tool {
namespace {

using core::Clock;

/// Immediates below 2^31 are iterations; those above are an endpoint's control messages.
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

/// Operations that the other end neither notices nor answers.
bool is_one_sided(Operation operation) noexcept {
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

BenchmarkResult Benchmark::run() {
  prepare_memory();
  for (const auto& endpoint : endpoints_) endpoint->set_batch(variant_.batch);
  sync_peer();
  const auto start = Clock::now();
  run_operation();
  if (!is_passive()) result_.duration = Clock::now() - start;
  // A passive end sleeps, which leaves its processor to the active end.
  environment_.set_event_driven(options_.event_driven || is_passive());
  sync_peer();
  environment_.set_event_driven(options_.event_driven);
  check_memory();
  return std::move(result_);
}

void Benchmark::sync_peer() {
  if (is_alone(options_.operation)) return;
  for (const auto& endpoint : endpoints_) endpoint->sync();
}

void Benchmark::run_operation() {
  if (options_.initiator == Initiator::gpu && !is_passive()) {
    run_on_device();
  } else if (options_.operation == Operation::sync_event) {
    is_requester() ? publish() : subscribe();
  } else if (options_.operation == Operation::ordered) {
    is_requester() ? read_then_send() : expect_send_of_read();
  } else if (is_passive()) {
    // The next sync ends it.
  } else if (is_one_sided(options_.operation)) {
    run_one_sided();
  } else if (options_.in_flight == 1) {
    ping_pong();
  } else if (is_sender()) {
    send_stream();
  } else {
    receive_stream();
  }
}

bool Benchmark::is_passive() const noexcept {
  if (is_one_sided(options_.operation)) return !is_requester();
  return options_.operation == Operation::write && options_.in_flight != 1 && !is_sender();
}

/// Clears the memory that the peer will write to, or fills what it will read.
void Benchmark::prepare_memory() {
  for (const auto& endpoint : endpoints_) {
    if (options_.operation == Operation::sync_event) endpoint->event().set(0);
    if (endpoint->device() != nullptr) endpoint->device()->clear_words();
    for (std::size_t slot = 0; slot < endpoint->incoming_slots(); ++slot) {
      const auto bytes = endpoint->incoming(slot).first(size_);
      if (is_one_sided(options_.operation)) {
        make(bytes, *endpoint, is_requester(), slot);
      } else {
        std::ranges::fill(bytes, std::byte{0});
      }
    }
  }
}

void Benchmark::ping_pong() {
  for (std::uint64_t i = 0; i < options_.iterations; ++i) {
    for (const auto& endpoint : endpoints_) {
      if (is_sender()) post(*endpoint, i);
      rdma::Receive* const message = wait_for_message(*endpoint, i);
      const auto time = Clock::now() - begun_[endpoint->number()];
      check_message(*endpoint, i, message);
      if (!is_sender()) post(*endpoint, i);
      // Last, as the peer does not wait for it. The answering end measures from its last answer.
      if (is_sender() || i != 0) result_.latency.record(time / 2);
      if (message != nullptr) endpoint->give_back(*message);
    }
  }
}

void Benchmark::send_stream() {
  for (std::uint64_t i = 0; i < options_.iterations; ++i) {
    for (const auto& endpoint : endpoints_) post(*endpoint, i);
  }
  for (const auto& endpoint : endpoints_) endpoint->wait_completed(endpoint->submitted());
}

void Benchmark::receive_stream() {
  for (std::uint64_t i = 0; i < options_.iterations; ++i) {
    for (const auto& endpoint : endpoints_) {
      rdma::Receive* const message = wait_for_message(*endpoint, i);
      check_message(*endpoint, i, message);
      endpoint->give_back(*message);
    }
  }
}

void Benchmark::run_one_sided() {
  const std::uint64_t depth = options_.in_flight;
  for (std::uint64_t i = 0; i < options_.iterations + depth; ++i) {
    for (const auto& endpoint : endpoints_) {
      if (i >= depth && i - depth < options_.iterations) finish_one_sided(*endpoint, i - depth);
      if (i >= options_.iterations) continue;
      endpoint->room();
      begun_[endpoint->number()] = Clock::now();
      post_one_sided(*endpoint, i);
    }
  }
}

/// Reads take turns among one slot more than this end has, so that the data of each of its slots
/// changes. An atomic finds the word that the one before it in its slot made.
void Benchmark::post_one_sided(Endpoint& endpoint, std::uint64_t iteration) {
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

void Benchmark::finish_one_sided(Endpoint& endpoint, std::uint64_t iteration) {
  // Later ones may be outstanding.
  const auto later = std::min<std::uint64_t>(options_.iterations - iteration, options_.in_flight);
  const std::uint64_t number = endpoint.submitted() - later;
  endpoint.wait_completed(number + 1);
  if (options_.in_flight == 1) result_.latency.record(Clock::now() - begun_[endpoint.number()]);
  const bool read = options_.operation == Operation::read;
  check(endpoint.outgoing(number).first(size_), endpoint, false,
        read ? iteration % (std::uint64_t{options_.in_flight} + 1) : iteration);
}

std::uint64_t Benchmark::word(const Endpoint& endpoint, std::uint64_t iteration) const noexcept {
  alignas(std::uint64_t) std::array<std::byte, sizeof(std::uint64_t)> bytes;
  fill(bytes, {options_.seed, endpoint.number(), false, iteration});
  return std::bit_cast<std::uint64_t>(bytes);
}

/// Checks what a passive end can check only afterwards: the last writes of a stream, the words that
/// atomics made, and that reads changed nothing.
void Benchmark::check_memory() {
  if (!is_passive()) return;
  const bool read = options_.operation == Operation::read;
  for (const auto& endpoint : endpoints_) {
    if (options_.operation == Operation::atomic) {
      check_words(*endpoint);
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

void Benchmark::check_words(Endpoint& endpoint) {
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

rdma::Receive* Benchmark::wait_for_message(Endpoint& endpoint, std::uint64_t iteration) {
  if (options_.operation != Operation::write) return &endpoint.receive();
  // Known devices write the bytes of a message in order, which perftest relies on too: the last
  // byte stands for all. Acquire: pairs with the device's write.
  const auto* const last = reinterpret_cast<const std::uint8_t*>(
      &endpoint.incoming(iteration % endpoint.incoming_slots())[size_ - 1]);
  environment_.wait([&] { return __atomic_load_n(last, __ATOMIC_ACQUIRE) == last_byte(iteration); },
                    "a write from the peer", kPollInterval);
  return nullptr;
}

void Benchmark::check_message(Endpoint& endpoint, std::uint64_t iteration, rdma::Receive* message) {
  const auto slot = endpoint.incoming(iteration % endpoint.incoming_slots()).first(size_);
  if (message == nullptr) return check(slot, endpoint, !is_requester(), iteration);
  if (message->length() != size_) {
    throw_wrong(iteration, fmt::format("received {} bytes, expected {}", message->length(), size_));
  }
  std::optional<std::uint32_t> immediate;
  if (has_immediate(options_.operation)) immediate = immediate_of(iteration);
  if (message->immediate() != immediate) throw_wrong(iteration, "the immediate data is wrong");
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
  if (mismatch) throw_mismatch(iteration, endpoint.number(), *mismatch);
  ++result_.checked;
}

void Benchmark::throw_mismatch(std::uint64_t iteration, std::uint32_t connection,
                               const Mismatch& mismatch) const {
  throw_wrong(iteration, fmt::format("connection {}, offset {}: expected {:#04x}, got {:#04x}",
                                     connection, mismatch.offset, mismatch.expected, mismatch.got));
}

void Benchmark::throw_wrong(std::uint64_t iteration, const std::string& what) const {
  throw core::Error(core::ErrorCode::unexpected,
                    fmt::format("wrong data: {}, {} bytes, iteration {}: {}",
                                name_of(options_.operation), size_, iteration, what));
}

// ---- Benchmarks whose iterations have several operations

/// Each iteration counts the sync event up by one, by a set or an add.
void Benchmark::publish() {
  using Work = Variant::Work;
  using Action = rdma::RemoteSyncEventTask::Action;
  const bool sets = variant_.work == Work::set;
  for (std::uint64_t i = 0; i < options_.iterations; ++i) {
    for (const auto& endpoint : endpoints_) {
      auto begun = Clock::now();
      std::uint64_t found =
          endpoint->work_on_event(sets ? Action::set : Action::add, sets ? i + 1 : 1);
      std::uint64_t expected = i;
      if (variant_.work == Work::get) {
        begun = Clock::now();
        found = endpoint->work_on_event(Action::get, 0);
        expected = i + 1;
      }
      result_.latency.record(Clock::now() - begun);
      if (sets) continue;
      if (found != expected) throw_wrong(i, "the event has the wrong value");
      ++result_.checked;
    }
  }
}

void Benchmark::subscribe() {
  for (std::uint64_t i = 0; i < options_.iterations; ++i) {
    for (const auto& endpoint : endpoints_) {
      environment_.wait([&] { return endpoint->event().get() > i; }, "the event", kPollInterval);
      if (endpoint->event().get() > options_.iterations) throw_wrong(i, "the event is too high");
      ++result_.checked;
    }
  }
}

/// The second connection sends what the first reads, from the same buffer. A send that did not wait
/// for the read would send the data of the read before it.
void Benchmark::read_then_send() {
  Endpoint& first = *endpoints_[0];
  Endpoint& second = *endpoints_[1];
  struct Run {
    bool ended = false;
    bool well = false;
  } run;
  const auto ended = [](progress::GraphInstance& instance, void* user_data) {
    *static_cast<Run*>(user_data) = {true, instance.status().ok()};
  };
  progress::Graph graph("read, then send", 1, {ended, ended, &run});
  graph.connect(environment_.engine());
  const auto read = graph.add_node("read", first.connection());
  const auto send = graph.add_node("send", second.connection());
  graph.add_dependency(read, send);
  graph.start();
  progress::GraphInstance& instance = *graph.allocate();
  for (std::uint64_t i = 0; i < options_.iterations; ++i) {
    first.sync();  // after it the peer's data can be read
    rdma::ReadTask& reading = first.prepared_read(0, size_);
    rdma::SendTask& sending = second.prepared_send(*reading.destination);
    run = {};
    const auto begun = Clock::now();
    if (!instance.bind_task(read, reading).ok() || !instance.bind_task(send, sending).ok() ||
        !graph.submit(instance).ok()) {
      throw core::Error(core::ErrorCode::unexpected, "the graph does not accept its tasks");
    }
    environment_.wait([&] { return run.ended; }, "the end of the graph");
    if (!run.well) {
      const bool reads = instance.failed_node() == read;
      throw core::Error(core::ErrorCode::io_failed,
                        reads ? "read: " + reading.explain() : "send: " + sending.explain());
    }
    result_.latency.record(Clock::now() - begun);
    check(first.outgoing(0).first(size_), first, false, i);
  }
  graph.stop();
}

void Benchmark::expect_send_of_read() {
  Endpoint& first = *endpoints_[0];
  Endpoint& second = *endpoints_[1];
  for (std::uint64_t i = 0; i < options_.iterations; ++i) {
    make(first.incoming(0).first(size_), first, false, i);
    first.sync();
    rdma::Receive& message = second.receive();
    if (message.length() != size_) throw_wrong(i, "a message has the wrong length");
    check(message.destination->data(), first, false, i);
    second.give_back(message);
  }
}

}  // namespace offload::rdma_tool
