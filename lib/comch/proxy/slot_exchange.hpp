#pragma once

#include <functional>
#include <memory>

#include "comch/proxy/channel_link.hpp"
#include "comch/transport/slot_path.hpp"

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
  SlotExchange(const protocol::ChannelDescriptor& shape, const Connect& connect)
      : ChannelLink(shape), path_(connect(memory_.endpoint().view, engine_)) {
    import_channel(&path_->writer());
  }
  ~SlotExchange() override { end_thread(); }

  [[nodiscard]] const std::string* failure() const noexcept override { return path_->failure(); }

 private:
  [[nodiscard]] const char* thread_name() const noexcept override { return "slots-"; }
  /// The back end looks for requests itself: nothing wakes it.
  void open(channel::Wakeup) override { path_->start(); }
  void close() noexcept override { path_->stop(); }

  std::unique_ptr<SlotPath> path_;
};

}  // namespace offload::comch
