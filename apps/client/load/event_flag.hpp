#pragma once

#include <cstdint>

#include "progress/engine.hpp"

namespace offload::client {

/// A flag that is set by an event of its descriptor.
class EventFlag final : public progress::EventHandler {
 public:
  void on_events(std::uint32_t) override { raised_ = true; }
  [[nodiscard]] bool raised() const noexcept { return raised_; }

 private:
  bool raised_ = false;
};

}  // namespace offload::client
