#include "apps/server/request_path.hpp"

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>
#include <new>
#include <utility>

#include "core/status.hpp"
#include "net/source/proxy_header.hpp"
#include "protocol/other_protocols.hpp"

namespace offload::server {
namespace {

using protocol::FrameView;
using protocol::MessageId;
using protocol::OtherProtocol;
using protocol::Refusal;

/// Frames and pieces that are gathered before they are sent.
constexpr std::size_t kBatch = 256;
/// A payload up to this length is copied behind its header, so that a batch is one piece; copying a
/// longer one would cost more than a separate piece.
constexpr std::size_t kShortPayload = kernels::kMaxPacketPayload;
/// Error frames are short too.
constexpr std::size_t kFrameRoom = protocol::kFrameHeaderSize + kShortPayload;

static_assert(protocol::kHttpRefusal.size() <= kFrameRoom);

constexpr const char* kSpeaksTls =
    "it is a TLS client at a port without TLS: the server has no --tls-certificate";
constexpr const char* kSpeaksHttp =
    "it is an HTTP client at a port that does not speak HTTP; --metrics has another port";
constexpr const char* kSpeaksProxy =
    "it begins with a PROXY header, and its address is not in --proxy-from";

/// Returns why a client is disconnected that began with `bytes`, which are no frame.
std::string_view describe_stranger(std::span<const std::byte> bytes, Refusal reason) noexcept {
  const OtherProtocol other = protocol::recognise(bytes);
  if (other == OtherProtocol::tls) return kSpeaksTls;
  if (other == OtherProtocol::http) return kSpeaksHttp;
  return net::looks_like_proxy_header(bytes) ? kSpeaksProxy : protocol::describe(reason);
}

/// The times of one in this number of requests are taken.
constexpr std::uint64_t kSampled = 64;

/// An arrival longer ago than this is not believed.
constexpr core::Duration kLongestAgo = core::seconds(60);

/// At most the largest number, an hour.
std::uint32_t microseconds_between(core::TimePoint begin, core::TimePoint end) noexcept {
  const auto count = std::chrono::duration_cast<std::chrono::microseconds>(end - begin).count();
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(count, 0, kMost));
}

/// A request with which this number of workers was lost is refused, whatever the reasons.
constexpr std::uint32_t kMostLosses = 4;

}  // namespace

RequestPath::RequestPath(progress::Engine& engine, ClientTable& clients,
                         const channel::ChannelEndpoint& endpoint, const Limits& limits,
                         ThreadMetrics& metrics)
    : engine_(&engine),
      clients_(&clients),
      metrics_(&metrics),
      limits_(limits),
      requester_(endpoint, *this),
      long_requests_(requester_.capacity()),
      output_(kBatch, kFrameRoom),
      slow_(limits.service, limits.slow_request, metrics) {
  sampled_.resize(std::max<std::size_t>(requester_.capacity() / kSampled, 1));
  touched_.reserve(2 * kBatch);  // each has a piece in output_ at least
  metrics_->slots.set(requester_.capacity());
}

void RequestPath::set_refusal(std::optional<Refusal> reason) {
  refusal_ = reason;
  if (!reason) return;
  requester_.for_each_pending([&](channel::RequestTask& request) { give_up(request, *reason); });
  for (Suspects* const some : {&held_, &suspects_}) {
    some->remove_if([&](const Suspects::Request& request) {
      give_up(request, *reason);
      return true;
    });
  }
  send_touched();
}

/// The slot stays taken until the worker answers, which is dropped, or is replaced.
void RequestPath::give_up(channel::RequestTask& request, Refusal reason) {
  auto* const client = static_cast<Client*>(std::exchange(request.user_data, nullptr));
  if (client == nullptr) return;
  slow_.note_refused(*client, request.arrived, request.waited_us, request.length(), reason,
                     engine_->now());
  give_up(*client, reason);
}

void RequestPath::give_up(const Suspects::Request& request, Refusal reason) {
  slow_.note_refused(*request.client, request.arrived, request.waited_us, request.payload.size(),
                     reason, engine_->now());
  give_up(*request.client, reason);
}

void RequestPath::give_up(Client& client, Refusal reason) {
  client.connection().remove_requests(1);
  append_error(client, reason);
  clients_->make_ready(client);
}

// ---- Time limits

void RequestPath::refuse_overdue(core::Duration timeout) {
  if (timeout == core::Duration{}) return;
  const auto due = engine_->run_time() - timeout;
  requester_.for_each_pending([&](channel::RequestTask& request) {
    if (request.posted_at() <= due) give_up(request, Refusal::request_timed_out);
  });
  send_touched();
}

std::optional<core::RunTime> RequestPath::silent_since() {
  if (requester_.awaited() == 0) return std::nullopt;
  return std::max(last_response_, requester_.oldest().posted_at());
}

// ---- After the loss of a worker

/// Without memory for them the requests stay together, and go to the next worker at once.
const Client* RequestPath::note_loss(const std::shared_ptr<const void>& memory, bool blame) {
  const bool alone = std::exchange(alone_, false);
  const std::uint64_t received = requester_.posted() - requester_.awaited();
  const bool again = received < std::exchange(retried_until_, 0);
  if (requester_.awaited() == 0) return nullptr;
  if (alone && blame && losses_ + 1 >= kCulpritLosses) {
    auto* const culprit = static_cast<Client*>(requester_.oldest().user_data);
    if (culprit != nullptr) close_culprit(*culprit);
    return culprit;
  }
  try {
    suspects_.take(requester_, memory, again ? losses_ + 1 : 1, engine_->run_time());
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  suspects_.remove_if([&](const Suspects::Request& request) {
    if (request.losses < kMostLosses) return false;
    give_up(request, Refusal::worker_failed);
    return true;
  });
  hold_suspects();
  send_touched();
  return nullptr;
}

/// Its oldest request is in the channel, and the others are suspects. They share one error frame.
void RequestPath::close_culprit(Client& client) {
  std::uint32_t count = 0;
  requester_.for_each_pending([&](channel::RequestTask& request) {
    if (std::exchange(request.user_data, nullptr) == nullptr) return;
    ++count;
    slow_.note_refused(client, request.arrived, request.waited_us, request.length(),
                       Refusal::worker_failed, engine_->now());
  });
  for (Suspects* const some : {&held_, &suspects_}) {
    some->remove_if([&](const Suspects::Request& request) {
      if (request.client != &client) return false;
      ++count;
      slow_.note_refused(client, request.arrived, request.waited_us, request.payload.size(),
                         Refusal::worker_failed, engine_->now());
      return true;
    });
  }
  count_refusal(Refusal::worker_failed);
  client.connection().remove_requests(count);
  client.connection().refuse(Refusal::worker_failed);
  clients_->make_ready(client);
}

/// A client's responses come in the order of its requests: all its suspects are in one of the two,
/// those that were in the channel last in front.
void RequestPath::hold_suspects() noexcept {
  const auto is_held = [](const Suspects::Request& request) {
    return request.client->connection().paused();
  };
  held_.move_if(suspects_, std::not_fn(is_held));
  suspects_.move_if(held_, is_held);
}

void RequestPath::refuse_paused(Refusal reason) {
  requester_.for_each_pending([&](channel::RequestTask& request) {
    const auto* const client = static_cast<const Client*>(request.user_data);
    if (client != nullptr && client->connection().paused()) give_up(request, reason);
  });
  held_.remove_if([&](const Suspects::Request& request) {
    give_up(request, reason);
    return true;
  });
  send_touched();
}

bool RequestPath::retry(bool together) {
  bool posted = false;
  while (!suspects_.empty()) {
    const Suspects::Request& next = suspects_.front();
    const bool joins = together && next.losses == 1 && (!alone_ || losses_ == 1);
    if (!joins && requester_.awaited() != 0) break;
    if (!requester_.post(next.payload, next.client, engine_->run_time() - next.age).ok()) break;
    requester_.newest().arrived = next.arrived;
    requester_.newest().waited_us = next.waited_us;
    long_requests_.note_posted(next.payload.size(), engine_->now());
    alone_ = !joins;
    losses_ = next.losses;
    suspects_.pop_front();
    posted = true;
  }
  if (!posted) return false;
  retried_until_ = requester_.posted();
  requester_.flush();
  return true;
}

// ---- Requests go

// In its caller: a call is a tenth of it.
[[gnu::always_inline]] inline bool RequestPath::forward(Client& client,
                                                        std::span<const std::byte> payload,
                                                        bool first) {
  if (client.turn_is_over()) return false;
  if (refusal_) {
    if (slow_.is_on()) note_refusal(client, payload.size(), first);
    append_error(client, *refusal_);
    return true;
  }
  if (!open_) return false;
  const core::TimePoint now = engine_->now();
  if (!long_requests_.may_post(payload.size(), requester_.awaited(), now)) return false;
  if (!requester_.post(payload, &client, engine_->run_time()).ok()) return false;
  long_requests_.note_posted(payload.size(), now);
  client.connection().add_request();
  if (slow_.is_on()) note_arrival(client, first);
  if (requester_.posted() % kSampled == 0) begin_sample(client, payload.size(), first);
  return true;
}

/// In its caller: what it counts stays in a register.
[[gnu::always_inline]] inline bool RequestPath::take_frames(Client& client, std::uint64_t& taken) {
  ClientConnection& connection = client.connection();
  const bool is_shown = metrics_->is_shown;
  while (connection.takes_frames()) {
    const FrameView frame =
        protocol::parse_frame(connection.input().bytes(), limits_.max_message_length);
    if (frame.state == FrameView::State::incomplete) return true;
    if (frame.state == FrameView::State::bad) {
      disconnect(client, frame.reason);
    } else if (frame.id != MessageId::client_request) {
      disconnect(client, Refusal::misplaced_message);
    } else if (forward(client, frame.payload, taken == 0)) {
      ++taken;
      if (is_shown) metrics_->request_bytes.record(frame.payload.size());
      // To send it a refusal may have closed it, which emptied its input.
      if (connection.state() == ClientConnection::State::closed) return true;
      connection.input().consume(frame.size());
    } else {
      return false;
    }
  }
  return true;
}

bool RequestPath::take_frames(Client& client) {
  std::uint64_t taken = 0;
  const bool all = take_frames(client, taken);
  if (taken != 0) metrics_->requests.add(taken);
  return all;
}

/// It has broken the protocol.
void RequestPath::disconnect(Client& client, Refusal reason) {
  count_refusal(reason);
  const net::ReceiveBuffer& input = client.connection().input();
  // A client that has sent a valid frame speaks this protocol, whatever its later bytes look like.
  const bool is_first = input.consumed() == 0;
  const bool is_http = is_first && protocol::recognise(input.bytes()) == OtherProtocol::http;
  clients_->log_disconnected(
      client, is_first ? describe_stranger(input.bytes(), reason) : protocol::describe(reason));
  client.connection().refuse(reason, is_http ? protocol::kHttpRefusal : std::string_view());
}

void RequestPath::finish(Client& client) {
  make_room();
  client.connection().finish(output_);
}

void RequestPath::end_round() {
  requester_.flush();
  send_touched();
}

void RequestPath::count_refusal(Refusal reason) noexcept {
  ++refused_;
  metrics_->count_refusal(reason);
}

// ---- Responses come

void RequestPath::on_response(channel::PostRecvTask& task) {
  last_received_ = &task;
  if (task.user_data == nullptr) return;  // given up: its client has had an error
  auto& client = *static_cast<Client*>(task.user_data);
  client.connection().remove_requests(task.count());
  answered_ += task.count();
  if ((task.sequence() + 1) % kSampled < task.count()) find_sample(task);
  if (task.response_status() != kernels::ResponseStatus::ok) {
    ++failed_;
    return append_error(client, Refusal::worker_failed);
  }

  make_room();
  touch(client);
  net::IovecChain& chain = client.connection().chain();
  if (const std::span<std::byte> whole = task.frame(); !whole.empty()) {
    return output_.refer(chain, whole);
  }
  const std::span<std::byte> payload = task.payload();
  std::byte* const frame = output_.room();
  protocol::store_header(frame, MessageId::client_response,
                         static_cast<std::uint32_t>(payload.size()));
  if (payload.size() <= kShortPayload) {
    std::ranges::copy(payload, frame + protocol::kFrameHeaderSize);
    output_.commit(chain, protocol::kFrameHeaderSize + payload.size());
  } else {
    output_.commit(chain, protocol::kFrameHeaderSize);
    output_.refer(chain, payload);
  }
}

/// The slots are released only after the write, as long payloads are sent from where they lie.
bool RequestPath::deliver() {
  if (last_received_ == nullptr) return false;
  last_response_ = engine_->run_time();
  alone_ = false;
  const core::TimePoint seen = slow_.is_on() ? core::Clock::now() : core::TimePoint{};
  send_touched();
  if (sample_) record_sample();
  if (slow_.is_on()) {
    const core::TimePoint sent = core::Clock::now();
    requester_.for_each_unreleased(
        [&](const channel::PostRecvTask& task) { slow_.note_sent(requester_, task, seen, sent); });
  }
  [[maybe_unused]] const core::Status released =
      requester_.release(*std::exchange(last_received_, nullptr));
  assert(released.ok());
  requester_.flush();
  return true;
}

// ---- Times of requests

/// Returns when bytes came, in the time of core::Clock; max() if that is not known. Uses the time
/// since then, because the wall clock may have been set since.
core::TimePoint RequestPath::time_of(net::WallTime came) noexcept {
  if (came == net::WallTime{}) return core::TimePoint::max();
  if (turn_ != engine_->now()) {
    turn_ = engine_->now();
    clock_now_ = core::Clock::now();
    wall_now_ = std::chrono::system_clock::now();
  }
  const auto ago = wall_now_ - came;
  return ago < kLongestAgo ? clock_now_ - ago : core::TimePoint::max();
}

/// Returns when the last bytes of the next frame of a client's input arrived, as far as that is
/// known. `first`: it is the first of the input.
core::TimePoint RequestPath::arrival_of(const Client& client, bool first) noexcept {
  return std::min(first ? client.frame_seen() : client.read_at(), time_of(client.came_at()));
}

/// Notes when the request that was just posted arrived.
void RequestPath::note_arrival(const Client& client, bool first) noexcept {
  channel::RequestTask& request = requester_.newest();
  request.arrived = arrival_of(client, first);
  request.waited_us = microseconds_between(request.arrived, engine_->now());
}

/// Reports a slow request that is refused before it is posted.
void RequestPath::note_refusal(const Client& client, std::size_t length, bool first) noexcept {
  const core::TimePoint arrived = arrival_of(client, first);
  slow_.note_refused(client, arrived, microseconds_between(arrived, engine_->now()), length,
                     *refusal_, engine_->now());
}

/// Begins the sample of the request that was just posted. `first`: its frame is the first of the
/// client's input.
void RequestPath::begin_sample(const Client& client, std::size_t length, bool first) noexcept {
  const std::uint64_t number = requester_.posted() - 1;
  const core::TimePoint began = first ? std::min(client.frame_read(), time_of(client.frame_came()))
                                      : std::min(client.read_at(), time_of(client.came_at()));
  sampled_[number / kSampled % sampled_.size()] = {began, client.read_at(), engine_->now(),
                                                   engine_->run_time(),
                                                   static_cast<std::uint32_t>(length)};
}

/// Finds the last one in a turn. After the loss of a worker, another request may have its number.
void RequestPath::find_sample(const channel::PostRecvTask& task) noexcept {
  const std::uint64_t number = (task.sequence() + 1) / kSampled * kSampled - 1;
  const Sample& sample = sampled_[number / kSampled % sampled_.size()];
  if (sample.posted_at != requester_.request(number).posted_at()) return;
  sample_ = sample;
  // Not the beginning of the turn: the answer may have come since.
  sample_->seen = core::Clock::now();
}

/// Records the sample of a response that was seen in this turn and is written now.
void RequestPath::record_sample() noexcept {
  const auto ticks = [](core::TimePoint time) {
    return static_cast<std::uint64_t>(time.time_since_epoch().count());
  };
  const RequestSample sample{ticks(sample_->began),     ticks(sample_->whole),
                             ticks(sample_->posted),    ticks(sample_->seen),
                             ticks(core::Clock::now()), sample_->length};
  sample_.reset();
  metrics_->samples.add(sample);
  metrics_->duration.record(core::Duration(sample.written - sample.began));
  std::uint64_t begin = sample.began;
  for (std::size_t stage = 0; stage < kStages.size(); ++stage) {
    const std::uint64_t end = sample.ends()[stage];
    metrics_->stages[stage].record(core::Duration(end - std::exchange(begin, end)));
  }
}

// ---- Output

void RequestPath::append_error(Client& client, Refusal reason) {
  count_refusal(reason);
  make_room();
  const std::size_t size = protocol::store_error_frame(output_.room(), reason);
  touch(client);
  output_.commit(client.connection().chain(), size);
}

void RequestPath::send_touched() {
  for (Client* const client : touched_) {
    metrics_->transmitted.add(client->connection().send(output_));
    // More to read now that it was answered, an end to come to, or nothing at all.
    clients_->make_ready(*client);
  }
  touched_.clear();
  output_.reset();
}

}  // namespace offload::server
