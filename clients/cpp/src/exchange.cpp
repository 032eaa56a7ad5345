#include "clients/cpp/src/exchange.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "clients/cpp/include/offload_client.h"

namespace offload::clients {
namespace {

/// Far above the texts that there are.
constexpr std::uint32_t kLongestError = 4096;

bool is_about_the_connection(int code) noexcept {
  return code >= OFFLOAD_OUT_OF_MEMORY && code <= OFFLOAD_TLS_REQUIRED;
}
/// The server answers one request by it, and closes the connection.
bool closes(int code) noexcept {
  return (code >= 1 && code <= 5) || code == OFFLOAD_SHUTTING_DOWN;
}

}  // namespace

void Exchange::submit(std::span<const std::byte> payload, std::uint64_t tag,
                      core::TimePoint deadline, bool idempotent) {
  Request request{
      .frame = {}, .tag = tag, .deadline = deadline, .idempotent = idempotent && limits_.retries};
  request.frame.resize(protocol::kFrameHeaderSize + payload.size());
  protocol::store_header(request.frame.data(), protocol::MessageId::client_request,
                         static_cast<std::uint32_t>(payload.size()));
  std::copy(payload.begin(), payload.end(), request.frame.begin() + protocol::kFrameHeaderSize);
  const std::size_t size = request.frame.size();
  const Place place = requests_.insert(requests_.end(), std::move(request));
  if (!has_unsent()) unsent_ = place;
  held_ += size;
  ++open_;
  next_expiry_ = std::min(next_expiry_, deadline);
}

std::size_t Exchange::gather(std::span<iovec> pieces) noexcept {
  std::size_t count = 0;
  std::size_t offset = offset_;
  for (Place place = unsent_; place != requests_.end() && count < pieces.size(); ++place) {
    place->offered = true;
    pieces[count++] = {place->frame.data() + offset, place->frame.size() - offset};
    offset = 0;
  }
  return count;
}

void Exchange::add_sent(std::size_t bytes) noexcept {
  offset_ += bytes;
  while (has_unsent() && offset_ >= unsent_->frame.size()) {
    offset_ -= unsent_->frame.size();
    if (!unsent_->idempotent || unsent_->given_up) release_frame(*unsent_);
    ++unsent_;
  }
}

void Exchange::release_frame(Request& request) noexcept {
  held_ -= request.frame.size();
  request.frame = {};
}

std::optional<Outcome> Exchange::next() {
  inbox_.consume(std::exchange(delivered_, 0));
  if (!ended_.empty()) {
    const Request& first = ended_.front();
    Outcome outcome{.tag = first.tag, .status = first.status, .data = {}, .text = *first.text};
    ended_.pop_front();
    --open_;
    return outcome;
  }
  const std::uint32_t longest = std::max(limits_.response_length, kLongestError);
  while (!ending_) {
    const protocol::FrameView frame = protocol::parse_frame(inbox_.bytes(), longest);
    if (frame.state == protocol::FrameView::State::incomplete) break;
    if (frame.state == protocol::FrameView::State::bad) {
      break_off("a malformed frame: " + std::string(protocol::describe(frame.reason)));
      break;
    }
    if (auto outcome = take(frame)) {
      delivered_ = frame.size();
      return outcome;
    }
    inbox_.consume(frame.size());
  }
  return {};
}

std::optional<Outcome> Exchange::take(const protocol::FrameView& frame) {
  using protocol::MessageId;
  if (frame.id == MessageId::error) return take_error(frame.payload);
  // The reference server repeats the request's.
  if (frame.id != MessageId::client_response && frame.id != MessageId::client_request) {
    break_off("message " + std::to_string(static_cast<std::uint32_t>(frame.id)) +
              " instead of a response");
  } else if (frame.payload.size() > limits_.response_length) {
    break_off("a response of " + std::to_string(frame.payload.size()) + " bytes; at most " +
              std::to_string(limits_.response_length) + " are allowed");
  } else if (requests_.begin() == unsent_) {
    break_off("a response without a request");
  } else {
    answered_ = true;
    return pop_answered(OFFLOAD_OK, frame.payload, {});
  }
  return {};
}

std::optional<Outcome> Exchange::take_error(std::span<const std::byte> payload) {
  const protocol::ErrorMessage error = protocol::parse_error(payload);
  const auto number = static_cast<std::uint32_t>(error.code);
  if (number == 0 || number > std::numeric_limits<int>::max() || payload.size() > kLongestError) {
    break_off("a malformed error frame");
    return {};
  }
  const auto code = static_cast<int>(number);
  const std::string_view name = protocol::name_of(error.code);
  std::string text = std::string(name.empty() ? "unknown code" : name) + " (" +
                     std::to_string(code) + "): " + error.text;
  const std::string closed = "the server closed the connection: " + text;
  // A request that is too long is refused by its header, before it was sent whole.
  const bool has_request = requests_.begin() != unsent_ || (offset_ != 0 && closes(code));
  if (is_about_the_connection(code) || !has_request) {
    ending_ = {.status = code, .text = closed, .may_retry = code != OFFLOAD_TLS_REQUIRED};
  } else {
    if (closes(code)) {
      ending_ = {.status = OFFLOAD_LOST, .text = closed, .may_retry = true};
    } else {
      answered_ = true;
    }
    return pop_answered(code, {}, std::move(text));
  }
  return {};
}

/// Ends the oldest request; returns nothing if its time was over before.
std::optional<Outcome> Exchange::pop_answered(int status, std::span<const std::byte> data,
                                              std::string text) {
  Request& oldest = requests_.front();
  std::optional<Outcome> outcome;
  if (!oldest.given_up) {
    outcome = Outcome{.tag = oldest.tag, .status = status, .data = data, .text = std::move(text)};
    --open_;
  }
  release_frame(oldest);
  if (unsent_ == requests_.begin()) {
    ++unsent_;
    offset_ = 0;
  }
  requests_.pop_front();
  return outcome;
}

void Exchange::break_off(std::string text) {
  ending_ = {.status = OFFLOAD_MALFORMED,
             .text = "the server sent " + std::move(text),
             .may_retry = false};
}

bool Exchange::expire(core::TimePoint now) {
  if (now < next_expiry_) return false;
  static const auto kText =
      std::make_shared<const std::string>("no response within the time limit");
  core::TimePoint next = core::TimePoint::max();
  bool any = false;
  bool was_sent = true;
  for (Place place = requests_.begin(); place != requests_.end();) {
    const Place current = place++;
    if (current == unsent_) was_sent = false;
    if (current->given_up) continue;
    if (current->deadline > now) {
      next = std::min(next, current->deadline);
      continue;
    }
    any = true;
    if (!current->offered) {  // so it is never sent
      if (unsent_ == current) unsent_ = place;
      release_frame(*current);
      current->status = OFFLOAD_TIMED_OUT;
      current->text = kText;
      ended_.splice(ended_.end(), requests_, current);
      continue;
    }
    ended_.push_back({.frame = {},
                      .tag = current->tag,
                      .deadline = {},
                      .idempotent = false,
                      .status = OFFLOAD_TIMED_OUT,
                      .text = kText});
    current->given_up = true;
    if (was_sent) release_frame(*current);
  }
  next_expiry_ = next;
  return any;
}

void Exchange::lose(int status, std::string text, bool retry) {
  const auto shared = std::make_shared<const std::string>(std::move(text));
  bool was_sent = true;
  core::TimePoint next = core::TimePoint::max();
  for (Place place = requests_.begin(); place != requests_.end();) {
    const Place current = place++;
    if (current == unsent_) was_sent = false;
    if (!current->given_up && retry && (!was_sent || current->idempotent)) {
      current->offered = false;
      next = std::min(next, current->deadline);
      continue;
    }
    release_frame(*current);
    if (current->given_up) {
      requests_.erase(current);
      continue;
    }
    current->status = status;
    current->text = shared;
    ended_.splice(ended_.end(), requests_, current);
  }
  unsent_ = requests_.begin();
  offset_ = 0;
  next_expiry_ = next;
  inbox_.clear();
  delivered_ = 0;
  ending_.reset();
  answered_ = false;
}

void Exchange::abandon() noexcept {
  for (Request& request : requests_) request.given_up = true;
  ended_.clear();
  open_ = 0;
}

}  // namespace offload::clients
