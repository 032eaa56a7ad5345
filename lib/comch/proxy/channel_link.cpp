#include "comch/proxy/channel_link.hpp"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/process/thread.hpp"

namespace offload::comch {
namespace {

/// The time for which the thread polls for answers or posts of the back end before it sleeps.
constexpr core::Duration kSpin = std::chrono::microseconds(50);
/// The longest sleep; the connection, the back end and the end of the link wake the thread.
constexpr core::Duration kLongestSleep = std::chrono::seconds(1);

}  // namespace

ChannelLink::ChannelLink(const protocol::ChannelDescriptor& shape)
    : memory_(shape.channel, shape.depth, shape.max_message_length, -1, 0,
              shape.max_response_length),
      engine_(kSpin) {}

void ChannelLink::import_channel(const channel::ResponseWriter* writer) {
  const auto own = memory_.fds();
  channel::OwnedChannelFds fds;
  std::transform(own.begin(), own.end(), fds.begin(), [](int fd) {
    return core::Fd(core::check_errno(::fcntl(fd, F_DUPFD_CLOEXEC, 0), "duplicate a descriptor"));
  });
  channel_ =
      std::make_shared<channel::ImportedChannel>(memory_.descriptor(), std::move(fds), writer);
}

void ChannelLink::start(channel::Wakeup wakeup, std::function<void()> on_failure) {
  on_failure_ = std::move(on_failure);
  open(wakeup);
  thread_ =
      core::start_thread(thread_name() + std::to_string(channel_->index()), [this] { run(); });
}

void ChannelLink::run() {
  while (!stop_.load(std::memory_order_relaxed) && failure() == nullptr) {
    engine_.run_once(engine_.now() + kLongestSleep);
  }
  if (failure() != nullptr) on_failure_();
  close();
}

void ChannelLink::end_thread() noexcept {
  stop_.store(true, std::memory_order_relaxed);
  engine_.notify();
  if (thread_.joinable()) thread_.join();
}

}  // namespace offload::comch
