#include "backend/staged_batch.hpp"

#include "kernels/services/echo.hpp"

namespace offload::backend {

using kernels::SingleLane;

/// A service that answers nothing, and puts the request into a batch.
struct Gather {
  StagedBatch* batch;
  std::uint64_t sequence;
  bool* added;

  static std::uint32_t response_length(std::uint32_t length) { return length; }

  template <class Group, class Response>
  void operator()(const Group&, const kernels::Request& request, const Response&) const {
    *added = batch->add(sequence, request);
  }
};

StagedBatch::Taken StagedBatch::take(const kernels::ChannelView& channel, std::uint64_t sequence,
                                     kernels::Staging& staging) {
  if (count() == kernels::kMostInBatch || bytes_ == capacity_) return Taken::full;
  bool added = false;
  switch (
      kernels::serve(SingleLane{}, channel, sequence, Gather{this, sequence, &added}, staging)) {
    case kernels::Outcome::nothing: return Taken::nothing;
    case kernels::Outcome::refused: return Taken::refused;
    case kernels::Outcome::answered: break;
  }
  return added ? Taken::added : Taken::full;
}

bool StagedBatch::add(std::uint64_t sequence, const kernels::Request& request) {
  const std::uint32_t room = kernels::room_in_batch(request.length());
  if (room > capacity_ - bytes_) return false;
  kernels::Echo{}(SingleLane{}, request,
                  kernels::FlatResponse(requests_->payloads() + bytes_, request.length()));
  requests_->entries[count()] = {bytes_, request.length()};
  sequences_[count()] = sequence;
  ++requests_->count;
  bytes_ += room;
  return true;
}

bool StagedBatch::answer(const kernels::ChannelView& channel, std::uint32_t i) const {
  const std::uint32_t flag = channel.layout.flag_of(sequences_[i]);
  const kernels::Slot slot = channel.response(sequences_[i]);
  const kernels::RequestBatch::Entry request = requests_->entries[i];
  const kernels::ResponseBatch::Entry response = responses_->entries[i];
  if (response.status != kernels::Status::ok || response.length > channel.layout.max_length ||
      response.length > kernels::room_in_batch(request.length)) {
    kernels::refuse(SingleLane{}, slot, flag);
    return false;
  }
  const kernels::Request payload(responses_->payloads() + request.place, response.length);
  kernels::answer(SingleLane{}, kernels::Echo{}, payload, slot, flag);
  return true;
}

}  // namespace offload::backend
