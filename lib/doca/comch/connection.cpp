#include "doca/comch/connection.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "doca/comch/control_context.hpp"

namespace offload::doca {

using core::Error;
using core::ErrorCode;
using core::Status;

namespace {

/// Posted buffers that are read at once.
constexpr int kPostedAtOnce = 64;

}  // namespace

Status RemoteConsumer::send(std::span<iovec> pieces, std::uint32_t producer,
                            std::uint32_t immediate, std::atomic<Progress>& progress) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    if (!link_) return ErrorCode::not_connected;
    if (sending_ != nullptr) send_rest();
    if (sending_ != nullptr) return ErrorCode::again;
    if (posted_.empty()) read_posted();
    if (posted_.empty()) return ErrorCode::again;
    std::size_t length = 0;
    for (const iovec& piece : pieces.subspan(1)) length += piece.iov_len;
    if (length - immediate > posted_.front()) return ErrorCode::invalid_value;
    posted_.pop_front();
    head_ = {ComchFrame::data, static_cast<std::uint32_t>(length), producer, immediate};
    pieces.front() = {&head_, sizeof head_};
    rest_.assign(pieces.begin(), pieces.end());
    sending_ = &progress;
    progress.store(Progress::sending, std::memory_order_relaxed);  // by the producer's thread
    send_rest();
    return {};
  } catch (const Error& error) {
    core::log_warning("a consumer is lost: {}", error.what());
    fail();
    return ErrorCode::not_connected;
  } catch (const std::bad_alloc&) {
    return ErrorCode::no_memory;
  }
}

bool RemoteConsumer::flush() noexcept {
  const std::lock_guard lock(mutex_);
  try {
    return sending_ != nullptr && send_rest();
  } catch (const Error& error) {
    core::log_warning("a consumer is lost: {}", error.what());
    fail();
    return true;
  }
}

void RemoteConsumer::close() noexcept {
  const std::lock_guard lock(mutex_);
  fail();
}

/// Returns whether bytes were sent.
bool RemoteConsumer::send_rest() {
  bool worked = false;
  while (!rest_.empty()) {
    std::size_t count = link_->send_some(rest_);
    if (count == 0) return worked;
    worked = true;
    auto piece = rest_.begin();
    for (; piece != rest_.end() && count >= piece->iov_len; ++piece) count -= piece->iov_len;
    rest_.erase(rest_.begin(), piece);
    if (rest_.empty()) break;
    rest_.front().iov_base = static_cast<std::byte*>(rest_.front().iov_base) + count;
    rest_.front().iov_len -= count;
  }
  // Pairs with the producer's read: it may let the bytes go.
  std::exchange(sending_, nullptr)->store(Progress::sent, std::memory_order_release);
  return true;
}

/// Reads a bounded number: a peer may send them as fast as they are read.
void RemoteConsumer::read_posted() {
  for (int i = 0; i < kPostedAtOnce; ++i) {
    const auto frame = link_->next_frame(0);
    if (!frame) return;
    if (frame->head.kind != ComchFrame::posted) {
      throw Error(ErrorCode::bad_message, "a consumer sent an invalid frame");
    }
    posted_.push_back(frame->head.first + (std::uint64_t{frame->head.second} << 32));
    if (!link_->may_have_more()) return;
  }
}

void RemoteConsumer::fail() noexcept {
  link_.reset();
  rest_.clear();
  if (sending_ == nullptr) return;
  std::exchange(sending_, nullptr)
      ->store(Progress::failed, std::memory_order_release);  // pairs with the read
}

ComchConnection::ComchConnection(ControlContext& owner, std::unique_ptr<Link> link,
                                 std::uint64_t token, const Introduction& peer, bool is_server)
    : owner_(&owner),
      link_(std::move(link)),
      token_(token),
      longest_message_(std::min(owner.longest_message(), peer.longest_message)),
      credit_(peer.receive_queue),
      is_server_(is_server) {
  owner.engine()->watch(link_->fd(), EPOLLIN, *this);
}

std::shared_ptr<RemoteConsumer> ComchConnection::find_consumer(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = remote_.find(id);
  return found != remote_.end() ? found->second : nullptr;
}

std::shared_ptr<OwnConsumer> ComchConnection::add_consumer(progress::Engine& engine) {
  if (!is_open()) throw Error(ErrorCode::not_connected, "the connection is closed");
  auto consumer = std::make_shared<OwnConsumer>();
  consumer->engine = &engine;
  consumer->is_servers = is_server_;
  {
    const std::lock_guard lock(mutex_);
    consumer->id = ++last_consumer_;
    own_.emplace(consumer->id, consumer);
    notices_.push_back({consumer->id, true});
  }
  has_notices_.store(true, std::memory_order_release);  // pairs with take_notices()
  owner_->engine()->notify();
  return consumer;
}

std::unique_ptr<Link> ComchConnection::take_link(OwnConsumer& consumer) {
  const std::lock_guard lock(mutex_);
  if (consumer.has_failed) throw Error(ErrorCode::not_connected, "the peer cannot reach it");
  return std::move(consumer.link);
}

void ComchConnection::remove_consumer(const OwnConsumer& consumer) noexcept {
  {
    const std::lock_guard lock(mutex_);
    own_.erase(consumer.id);
    notices_.push_back({consumer.id, false});
  }
  has_notices_.store(true, std::memory_order_release);  // pairs with take_notices()
  owner_->engine()->notify();
}

std::vector<ComchConnection::Notice> ComchConnection::take_notices() {
  if (!has_notices()) return {};
  has_notices_.store(false, std::memory_order_relaxed);  // a later change sets it behind this
  const std::lock_guard lock(mutex_);
  return std::exchange(notices_, {});
}

bool ComchConnection::attach_own(std::uint32_t id, std::unique_ptr<Link> link) {
  const std::lock_guard lock(mutex_);
  const auto found = own_.find(id);
  if (found == own_.end()) return false;
  found->second->link = std::move(link);
  found->second->engine->notify();
  return true;
}

void ComchConnection::fail_own(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = own_.find(id);
  if (found == own_.end()) return;
  found->second->has_failed = true;
  found->second->engine->notify();
}

bool ComchConnection::has_room(std::size_t opening) {
  const std::lock_guard lock(mutex_);
  return remote_.size() + opening < kMostConsumers;
}

bool ComchConnection::add_remote(std::uint32_t id, std::unique_ptr<Link> link) {
  const std::lock_guard lock(mutex_);
  if (gone_early_.erase(id) != 0) return false;
  return remote_.emplace(id, std::make_shared<RemoteConsumer>(std::move(link))).second;
}

bool ComchConnection::remove_remote(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = remote_.find(id);
  if (found == remote_.end()) {
    if (gone_early_.size() < 1024) gone_early_.insert(id);
    return false;
  }
  found->second->close();
  remote_.erase(found);
  return true;
}

void ComchConnection::close() noexcept {
  open_.store(false, std::memory_order_release);  // pairs with is_open()
  if (link_) {
    owner_->engine()->unwatch(link_->fd(), *this);
    link_->end_output();
    closed_link_ = std::move(link_);
  }
  const std::lock_guard lock(mutex_);
  for (auto& [id, consumer] : remote_) consumer->close();
  remote_.clear();
  for (auto& [id, consumer] : own_) consumer->engine->notify();
}

}  // namespace offload::doca
