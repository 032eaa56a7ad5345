#include <sys/epoll.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "comch/keys/key.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "doca/comch/control_context.hpp"

namespace offload::doca {

using core::Error;
using core::ErrorCode;

namespace {

/// The streams that have not said yet what they are for.
constexpr std::size_t kMostNewcomers = 64;
/// The time that they have for it.
constexpr core::Duration kIntroductionTime = std::chrono::seconds(3);
/// The part of it that they have even if others wait.
constexpr core::Duration kCertainTime = std::chrono::milliseconds(500);
/// The longest first frame: an introduction and a name.
constexpr std::size_t kLongestGreeting = sizeof(Introduction) + 256;

std::uint64_t make_token() {
  std::uint64_t token = 0;
  comch::randomize(std::as_writable_bytes(std::span(&token, 1)));
  return token;
}

}  // namespace

ServerContext::ServerContext(std::string pci_address, std::string name, ControlEvents& events)
    : ControlContext("comch server " + name, events),
      pci_address_(std::move(pci_address)),
      name_(std::move(name)) {}

ServerContext::~ServerContext() {
  end();
}

progress::Context::Step ServerContext::on_start() {
  listener_.emplace(ComchPlace::of(pci_address_, name_));
  for (const core::Fd& socket : listener_->sockets()) engine()->watch(socket.get(), EPOLLIN, *this);
  may_accept_ = is_watching_ = true;
  request_turn();
  return Step::done;
}

void ServerContext::close_streams() noexcept {
  newcomers_.clear();
  may_accept_ = false;
  if (!listener_) return;
  for (const core::Fd& socket : listener_->sockets()) engine()->unwatch(socket.get(), *this);
  listener_.reset();
}

bool ServerContext::poll_streams() {
  bool worked = false;
  for (std::size_t i = 0; i < newcomers_.size();) {
    bool has_ended = true;
    try {
      has_ended = poll_newcomer(newcomers_[i]);  // its events may stop the context
    } catch (const Error& error) {
      core::log_warning("{}: a client is refused: {}", name(), error.what());
    }
    if (state() != State::running) return true;
    if (has_ended) newcomers_.erase(newcomers_.begin() + static_cast<std::ptrdiff_t>(i));
    i += has_ended ? 0 : 1;
    worked = worked || has_ended;
  }
  return accept_newcomers() || worked;  // last, as the others may have introduced themselves
}

void ServerContext::take_streams() {
  may_accept_ = true;
  accept_newcomers();
  poll_streams();
}

bool ServerContext::accept_newcomers() {
  bool worked = false;
  bool has_room = true;
  try {
    for (std::size_t i = 0; may_accept_ && has_room && i < kMostNewcomers; ++i) {
      has_room = newcomers_.size() < kMostNewcomers ||
                 newcomers_.front().until - core::Clock::now() < kIntroductionTime - kCertainTime;
      if (has_room) worked = accept_one() || worked;
    }
  } catch (const Error& error) {
    if (is_watching_) core::log_warning("{}: {}", name(), error.what());
    has_room = false;
  }
  watch_listener(has_room);
  return worked;
}

/// The oldest newcomer makes room for it.
bool ServerContext::accept_one() {
  std::unique_ptr<Link> link = listener_->accept();
  may_accept_ = link != nullptr;
  if (!link) return false;
  if (newcomers_.size() == kMostNewcomers) newcomers_.erase(newcomers_.begin());
  newcomers_.push_back({std::move(link), core::Clock::now() + kIntroductionTime});
  return true;
}

/// An event of a socket that is not read would come again at every look. While it is not watched,
/// each turn tries to accept.
void ServerContext::watch_listener(bool is_on) {
  if (is_watching_ == is_on) return;
  for (const core::Fd& socket : listener_->sockets()) {
    engine()->rewatch(socket.get(), is_on ? EPOLLIN : 0U, *this);
  }
  is_watching_ = is_on;
}

bool ServerContext::poll_newcomer(Newcomer& newcomer) {
  newcomer.is_open = newcomer.is_open || newcomer.link->handshake();
  const auto frame = newcomer.is_open ? newcomer.link->next_frame(kLongestGreeting) : std::nullopt;
  if (!frame) {
    if (core::Clock::now() < newcomer.until) return false;
    throw Error(ErrorCode::timed_out, "it did not introduce itself in time");
  }
  switch (frame->head.kind) {
    case ComchFrame::hello: greet(std::move(newcomer.link), frame->payload); break;
    case ComchFrame::attach: attach(std::move(newcomer.link), frame->payload); break;
    default: throw Error(ErrorCode::bad_message, "it sent an invalid frame");
  }
  return true;
}

void ServerContext::greet(std::unique_ptr<Link> link, std::span<const std::byte> hello) {
  const Introduction peer = read_introduction(hello);
  const auto text = hello.subspan(sizeof peer);
  const std::string_view asked(reinterpret_cast<const char*>(text.data()), text.size());
  if (asked != name_) throw Error(ErrorCode::not_found, "it asks for a server of another name");
  if (connections().size() == kMostClients) throw Error(ErrorCode::full, "there are too many");
  const std::uint64_t token = make_token();
  link->send({ComchFrame::welcome}, bytes_of(introduction(token)));
  events().on_connection(add(std::move(link), token, peer, true), true);
}

void ServerContext::attach(std::unique_ptr<Link> link, std::span<const std::byte> payload) {
  Attachment attachment;
  if (payload.size() != sizeof attachment) {
    throw Error(ErrorCode::bad_message, "it sent an invalid frame");
  }
  std::memcpy(&attachment, payload.data(), sizeof attachment);
  const auto all = connections();
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const auto& each) { return each->token_ == attachment.token; });
  if (found == all.end()) throw Error(ErrorCode::not_found, "its connection is closed");
  const std::shared_ptr<ComchConnection>& connection = *found;
  if (!connection->has_room(0)) throw Error(ErrorCode::full, "it has too many consumers");
  if (attachment.is_servers != 0) {
    connection->attach_own(attachment.consumer, std::move(link));
    return;
  }
  link->send({ComchFrame::attached});
  if (connection->add_remote(attachment.consumer, std::move(link))) {
    events().on_consumer(*connection, attachment.consumer, true);
  }
}

void ServerContext::announce(ComchConnection& connection, std::uint32_t consumer, bool is_new) {
  const ComchFrame kind = is_new ? ComchFrame::consumer_new : ComchFrame::consumer_gone;
  connection.link_->send({kind, 0, consumer});
}

}  // namespace offload::doca
