#include "apps/server/acceptor.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "core/error.hpp"

namespace offload::server {
namespace {

/// A flood of clients does not keep the control thread from the worker.
constexpr int kAcceptsAtOnce = 64;
/// How long it waits for descriptors or memory to become free.
constexpr core::Duration kRetryInterval = std::chrono::milliseconds(100);

/// The machine has no descriptor or no memory left: the client stays in the backlog.
bool is_exhaustion(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

Acceptor::Acceptor(progress::Engine& engine, Config config,
                   const std::vector<std::unique_ptr<IoThread>>& threads)
    : engine_(&engine),
      listener_(std::move(config.listener)),
      first_reserved_fd_(config.first_reserved_fd),
      threads_(&threads) {
  engine_->watch(listener_.get(), EPOLLIN, *this);
}

Acceptor::~Acceptor() {
  engine_->unwatch(listener_.get(), *this);
}

void Acceptor::tick(core::TimePoint now) {
  if (now < retry_) return;
  retry_ = now + kRetryInterval;
  try {
    engine_->watch(listener_.get(), EPOLLIN, *this);
    retry_ = core::TimePoint::max();
  } catch (const core::Error& error) {
    log_turned_away(error.what());
  }
}

void Acceptor::on_events(std::uint32_t) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    core::Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      if (is_exhaustion(errno)) {
        log_turned_away(std::generic_category().message(errno));
        pause();
      }
      return;  // nobody, or one who has left: the others make the socket readable
    }
    if (socket.get() < first_reserved_fd_) {
      choose_thread().take(std::move(socket));
    } else {
      log_turned_away("the limit of open files is reached");
    }
  }
}

/// That with the fewest clients; of several such, in turn.
IoThread& Acceptor::choose_thread() noexcept {
  const std::size_t count = threads_->size();
  std::size_t best = first_choice_ % count;
  for (std::size_t i = 1; i < count; ++i) {
    const std::size_t candidate = (first_choice_ + i) % count;
    if ((*threads_)[candidate]->client_count() < (*threads_)[best]->client_count()) {
      best = candidate;
    }
  }
  first_choice_ = best + 1;
  return *(*threads_)[best];
}

/// Until tick(): the listener, which stays readable, would keep the thread awake.
void Acceptor::pause() {
  engine_->unwatch(listener_.get(), *this);
  retry_ = engine_->now() + kRetryInterval;
}

void Acceptor::log_turned_away(const std::string& reason) {
  if (!turned_away_log_.allow(engine_->now())) return;
  core::log_warning("a client is turned away: {} ({} more were not logged)", reason,
                    turned_away_log_.suppressed());
}

}  // namespace offload::server
