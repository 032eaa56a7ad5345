#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "doca/comch/control_context.hpp"

namespace offload::doca {

using core::Error;
using core::ErrorCode;

namespace {

/// The time that a start may take.
constexpr core::Duration kStartTime = std::chrono::seconds(3);

}  // namespace

ClientContext::ClientContext(std::string pci_address, std::string name, ControlEvents& events)
    : ControlContext("comch client of " + name, events),
      pci_address_(std::move(pci_address)),
      name_(std::move(name)) {}

ClientContext::~ClientContext() {
  end();
}

progress::Context::Step ClientContext::on_start() {
  place_ = ComchPlace::of(pci_address_, name_);
  start_limit_ = {};
  try {
    place_->resolve();
    openings_.push_back(std::make_unique<Opening>(Opening{Dial(*place_)}));
  } catch (const Error& error) {
    core::log_error("{}: {}", name(), error.what());  // the first turn ends the start
  }
  return Step::in_progress;
}

bool ClientContext::on_poll(std::size_t most) {
  return state() == State::starting ? poll_start() : ControlContext::on_poll(most);
}

bool ClientContext::poll_start() {
  try {
    if (!has_pending_streams()) {
      stopped();
      return true;
    }
    if (start_limit_ == core::TimePoint{}) start_limit_ = core::Clock::now() + kStartTime;
    if (!openings_.empty()) {
      greeting_ = openings_.front()->dial.poll();
      if (greeting_) {
        openings_.clear();
        std::vector<std::byte> hello;
        const Introduction own = introduction(0);
        const auto begin = bytes_of(own);
        const auto text = std::as_bytes(std::span(name_));
        hello.insert(hello.end(), begin.begin(), begin.end());
        hello.insert(hello.end(), text.begin(), text.end());
        greeting_->send({ComchFrame::hello}, hello);
      }
    }
    if (greeting_) {
      greeting_->flush();
      if (const auto frame = greeting_->next_frame(sizeof(Introduction))) {
        if (frame->head.kind != ComchFrame::welcome) {
          throw Error(ErrorCode::bad_message, "the server sent an invalid frame");
        }
        const Introduction peer = read_introduction(frame->payload);
        add(std::move(greeting_), peer.token, peer, false);
        started();
        return true;
      }
    }
    if (core::Clock::now() < start_limit_) return false;
    throw Error(ErrorCode::timed_out, "the server does not answer");
  } catch (const Error& error) {
    core::log_error("{}: cannot connect to {}: {}", name(), place_->to_string(), error.what());
    close_streams();
    stopped();
    return true;
  }
}

void ClientContext::close_streams() noexcept {
  openings_.clear();
  greeting_.reset();
}

bool ClientContext::poll_streams() {
  bool worked = false;
  for (std::size_t i = 0; i < openings_.size();) {
    // It stays where it is while its events are called, which may stop the context.
    std::unique_ptr<Opening> opening = std::move(openings_[i]);
    openings_.erase(openings_.begin() + static_cast<std::ptrdiff_t>(i));
    const bool is_done = poll_opening(*opening);
    if (state() != State::running) return true;
    worked = worked || is_done;
    if (is_done) continue;
    openings_.insert(openings_.begin() + static_cast<std::ptrdiff_t>(i), std::move(opening));
    ++i;
  }
  return worked;
}

bool ClientContext::poll_opening(Opening& opening) {
  if (connections().empty()) return true;  // lost
  ComchConnection& connection = *connections().front();
  std::unique_ptr<Link> link;
  try {
    link = opening.dial.poll();
    if (!link) return false;
    const Attachment attachment{connection.token_, opening.consumer, opening.is_own ? 0U : 1U};
    link->send({ComchFrame::attach}, bytes_of(attachment));
  } catch (const Error& error) {
    give_up(connection, opening.consumer, opening.is_own, error);
    return true;
  }
  if (opening.is_own) {
    connection.attach_own(opening.consumer, std::move(link));
  } else if (connection.add_remote(opening.consumer, std::move(link))) {
    events().on_consumer(connection, opening.consumer, true);
  }
  return true;
}

/// Opens a stream, at once if the server has room for it: a program may let time go by before its
/// next turn.
void ClientContext::open(ComchConnection& connection, std::uint32_t consumer, bool is_own) {
  std::unique_ptr<Opening> opening;
  try {
    opening = std::make_unique<Opening>(Opening{Dial(*place_), consumer, is_own});
  } catch (const Error& error) {
    return give_up(connection, consumer, is_own, error);
  }
  if (!poll_opening(*opening)) openings_.push_back(std::move(opening));
}

void ClientContext::give_up(ComchConnection& connection, std::uint32_t consumer, bool is_own,
                            const Error& error) {
  core::log_error("{}: no stream to a consumer: {}", name(), error.what());
  if (is_own) {
    connection.fail_own(consumer);
  } else {
    connection.link_->keep({ComchFrame::unreachable, 0, consumer});
  }
}

void ClientContext::announce(ComchConnection& connection, std::uint32_t consumer, bool is_new) {
  if (is_new) return open(connection, consumer, true);
  const auto canceled = std::erase_if(
      openings_, [&](const auto& each) { return each->is_own && each->consumer == consumer; });
  if (canceled == 0) connection.link_->send({ComchFrame::consumer_gone, 0, consumer});
}

void ClientContext::reach_consumer(ComchConnection& connection, std::uint32_t consumer) {
  if (connection.has_room(openings_.size())) return open(connection, consumer, false);
  connection.link_->send({ComchFrame::unreachable, 0, consumer});
}

}  // namespace offload::doca
