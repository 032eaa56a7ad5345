#include "rdma/verbs/completion_queue.hpp"

#include <limits>
#include <string>

namespace offload::rdma {

CompletionChannel::CompletionChannel(const DeviceContext& device)
    : native_(check_pointer(ibv_create_comp_channel(device.get()),
                            "make a completion channel on " + device.name()),
              "a completion channel") {
  set_nonblocking(fd());
}

std::optional<CompletionEvent> CompletionChannel::take_event() noexcept {
  CompletionEvent event;
  if (ibv_get_cq_event(get(), &event.queue, &event.context) != 0) return std::nullopt;
  ibv_ack_cq_events(event.queue, 1);
  return event;
}

std::size_t CompletionChannel::take_events() noexcept {
  std::size_t count = 0;
  while (take_event()) ++count;
  return count;
}

CompletionQueue::CompletionQueue(const DeviceContext& device, std::uint32_t depth,
                                 const CompletionChannel* channel, int comp_vector,
                                 void* cq_context) {
  constexpr std::uint32_t kMost = std::numeric_limits<int>::max();
  if (depth == 0 || depth > kMost) {
    throw core::Error(core::ErrorCode::invalid_value,
                      "invalid completion queue depth " + std::to_string(depth) +
                          "; allowed are 1 to " + std::to_string(kMost));
  }
  native_ = {
      check_pointer(ibv_create_cq(device.get(), static_cast<int>(depth), cq_context,
                                  channel == nullptr ? nullptr : channel->get(), comp_vector),
                    "make a completion queue on " + device.name()),
      "a completion queue"};
}

core::Status CompletionQueue::arm(bool solicited_only) noexcept {
  return post_status(ibv_req_notify_cq(get(), solicited_only ? 1 : 0));
}

void CompletionQueue::moderate(std::uint16_t count, std::uint16_t period) {
  ibv_modify_cq_attr attributes{IBV_CQ_ATTR_MODERATE, {count, period}};
  check(ibv_modify_cq(get(), &attributes), "moderate a completion queue");
}

}  // namespace offload::rdma
