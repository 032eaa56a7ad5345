#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "channel/channel_memory.hpp"
#include "comch/proxy/channel_link.hpp"
#include "comch/transport/slot_path.hpp"
#include "progress/engine.hpp"
#include "protocol/control.hpp"

namespace offload::comch {

/// A server on another machine that writes requests into the slots of this machine, and into whose
/// slots the back end writes its responses (ImportedChannel::writer()). Its thread carries out the
/// entries that the back end posts if no card does, and inspects no slot.
class SlotExchange final : public ChannelLink {
 public:
  /// Connects the slots of `channel`, which is on this machine, to the server's; uses `engine`.
  using Connect = std::function<std::unique_ptr<SlotPath>(const kernels::ChannelView& channel,
                                                          progress::Engine& engine)>;

  /// `shape`: the server's description of the channel. Throws Error.
  SlotExchange(const protocol::ChannelDescriptor& shape, const Connect& connect);
  ~SlotExchange() override;

  [[nodiscard]] const channel::SharedChannel& channel() const noexcept override { return channel_; }
  void start(channel::Wakeup wakeup, std::function<void()> on_failure) override;
  [[nodiscard]] const std::string* failure() const noexcept override { return path_->failure(); }

 private:
  void run();

  channel::ChannelMemory memory_;
  progress::Engine engine_;
  std::unique_ptr<SlotPath> path_;
  channel::SharedChannel channel_;
  std::function<void()> on_failure_;
  std::atomic<bool> stop_{false};  ///< relaxed; notify() orders it
  std::thread thread_;
};

}  // namespace offload::comch
