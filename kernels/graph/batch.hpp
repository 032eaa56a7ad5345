#pragma once

#include "kernels/message.hpp"

/// A batch of one launch: the messages of many slots in one piece of memory each way, so that one
/// copy takes them to a GPU and one brings the answers back, for a worker without a persistent
/// kernel. Not to be confused with the batch that travels in one slot (slot_batch.hpp), whose
/// messages are here among the others.
///
///   RequestBatch | payloads        ResponseBatch | payloads
///
/// A message has the same place among the payloads in both.
namespace offload::kernels {

/// The maximum number of messages of a batch. A block of threads processes each; a large GPU runs
/// this many at a time.
inline constexpr std::uint32_t kMostInBatch = 256;

/// The front of a batch of requests.
struct alignas(16) RequestBatch {
  std::uint32_t count;
  struct Entry {
    std::uint32_t place;   ///< of its payload, bytes after the first; a multiple of 16
    std::uint32_t length;  ///< bytes
  } entries[kMostInBatch];

  OFFLOAD_HOST_DEVICE std::uint8_t* payloads() { return reinterpret_cast<std::uint8_t*>(this + 1); }
  OFFLOAD_HOST_DEVICE const std::uint8_t* payloads() const {
    return reinterpret_cast<const std::uint8_t*>(this + 1);
  }
};

/// The front of a batch of responses, one entry a request.
struct alignas(16) ResponseBatch {
  struct Entry {
    std::uint32_t length;  ///< bytes
    ResponseStatus status;
  } entries[kMostInBatch];

  OFFLOAD_HOST_DEVICE std::uint8_t* payloads() { return reinterpret_cast<std::uint8_t*>(this + 1); }
  OFFLOAD_HOST_DEVICE const std::uint8_t* payloads() const {
    return reinterpret_cast<const std::uint8_t*>(this + 1);
  }
};
static_assert(sizeof(RequestBatch) % sizeof(Block) == 0 && sizeof(RequestBatch) >= kSlack);
static_assert(sizeof(ResponseBatch) % sizeof(Block) == 0 && sizeof(ResponseBatch) >= kSlack);

/// The minimum room of a message, in bytes: an answer may be this long, however short its request.
inline constexpr std::uint32_t kLeastRoom = kLongestDigest;
static_assert(kLeastRoom % sizeof(Block) == 0);

/// Bytes that a request of `length`, at most kMaxMessageLength, takes up, and its answer too.
OFFLOAD_HOST_DEVICE constexpr std::uint32_t room_in_batch(std::uint32_t length) {
  constexpr std::uint32_t kBlock = sizeof(Block);
  return length < kLeastRoom ? kLeastRoom : (length + kBlock - 1) / kBlock * kBlock;
}

/// Bytes that the messages of one slot take up at most, one of up to `max_length` or a batch: none
/// takes more than kLeastRoom beyond its length.
constexpr std::uint32_t room_of_slot(std::uint32_t max_length) {
  constexpr std::uint32_t kOfBatch = kMaxBatchCount * kLeastRoom + kMaxBatchContent;
  const std::uint32_t alone = room_in_batch(max_length);
  return alone < kOfBatch ? kOfBatch : alone;
}
static_assert(kMaxBatchCount <= kMostInBatch);

/// A batch, by the addresses at which its worker sees it.
struct LaunchBatch {
  const RequestBatch* requests;
  ResponseBatch* responses;
  std::uint32_t capacity;    ///< of the payloads, bytes each way; kSlack more can be read
  std::uint32_t max_length;  ///< of a message, bytes
};

/// Answers message `index` of a batch, if there is one. Called by every lane of the group, with the
/// same arguments. Trusts no entry: one that is not within the batch is answered bad_length.
template <class Group, class Service>
OFFLOAD_HOST_DEVICE void serve_in_batch(const Group& group, const LaunchBatch& batch,
                                        std::uint32_t index, const Service& service) {
  if (index >= batch.requests->count || index >= kMostInBatch) return;
  const RequestBatch::Entry request = batch.requests->entries[index];
  ResponseBatch::Entry response{0, ResponseStatus::bad_length};
  if (request.length <= batch.max_length && request.place % sizeof(Block) == 0 &&
      request.place <= batch.capacity &&
      room_in_batch(request.length) <= batch.capacity - request.place) {
    response = {service.response_length(request.length), ResponseStatus::ok};
    service(group, Request(batch.requests->payloads() + request.place, request.length),
            FlatResponse(batch.responses->payloads() + request.place, response.length));
  }
  if (group.lane() == 0) batch.responses->entries[index] = response;
}

}  // namespace offload::kernels
