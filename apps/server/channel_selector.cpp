#include "apps/server/channel_selector.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/process/out_of_memory.hpp"

namespace offload::server {

using comch::WorkerId;

ChannelSelector::ChannelSelector(channel::Requester& requester,
                                 std::shared_ptr<comch::WorkerChannel> first)
    : requester_(&requester) {
  add(std::move(first));
  current_ = lines_.front();
}

void ChannelSelector::add(std::shared_ptr<comch::WorkerChannel> channel) {
  lines_.push_back(std::make_shared<Line>(Line{std::move(channel)}));
}

void ChannelSelector::remove(WorkerId worker) {
  if (serving_ == worker) {
    requester_->set_wakeup(channel::Wakeup::none);
    serving_ = 0;
  }
  if (current_->channel->worker == worker) current_->proxy.reset();
  std::erase_if(lines_, [&](const auto& line) { return line->channel->worker == worker; });
}

bool ChannelSelector::progress() {
  if (selected_ == serving_) return false;
  if (serving_ != 0) {
    if (requester_->awaited() != 0) return false;
    requester_->set_wakeup(channel::Wakeup::none);
    serving_ = 0;
  }
  const auto line = find(selected_);
  if (!line || line->lost) return selected_ == 0;
  try {
    move_to(line);
    serving_ = selected_;
  } catch (const std::exception& error) {
    line->lost = true;
    loss_ = {selected_, core::what_of(error)};
  }
  return true;
}

void ChannelSelector::move_to(const std::shared_ptr<Line>& line) {
  comch::WorkerChannel& channel = *line->channel;
  const auto endpoint = channel.memory.endpoint(line->next);
  if (channel.endpoint) {
    line->proxy = std::make_unique<comch::WorkerProxy>(*requester_, endpoint,
                                                       std::exchange(channel.endpoint, {}));
  }
  if (line == current_) return requester_->set_wakeup(channel.wakeup);
  const std::uint64_t posted = requester_->slots().posted();
  requester_->move_to(endpoint, channel.wakeup);
  current_->next = posted;
  current_ = line;
}

std::optional<ChannelSelector::Loss> ChannelSelector::take_loss() {
  for (const auto& line : lines_) {
    if (line->lost || !line->proxy || line->proxy->failure() == nullptr) continue;
    line->lost = true;
    loss_ = {line->channel->worker, *line->proxy->failure()};
  }
  return std::exchange(loss_, std::nullopt);
}

std::shared_ptr<ChannelSelector::Line> ChannelSelector::find(WorkerId worker) const {
  const auto found = std::ranges::find_if(
      lines_, [&](const auto& line) { return line->channel->worker == worker; });
  return found != lines_.end() ? *found : nullptr;
}

}  // namespace offload::server
