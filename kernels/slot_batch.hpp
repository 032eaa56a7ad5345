#pragma once

#include <type_traits>

#include "kernels/group.hpp"
#include "kernels/message.hpp"
#include "kernels/services/echo.hpp"

/// Batches: the short messages that travel in one slot (docs/reference/wire-protocol.md).
///
///   requests:   u16 length [count] (little endian) | payloads, back to back
///   responses:  frames, back to back, as clients get them
///
/// A frame is u32 12 + length | u32 kind | u32 length (big endian) | payload.
namespace offload::kernels {

/// Bytes of a frame's header.
inline constexpr std::uint32_t kFrameHeader = 12;

/// Kinds of frames (protocol::MessageId).
enum class FrameKind : std::uint32_t {
  response = 5,
  error = 6,  ///< without a payload: the worker has refused this request
};

/// What a request of `length` bytes takes of a batch's content at most, in either direction: a
/// response may have the longer of `length` and `longest_response` (services.hpp).
OFFLOAD_HOST_DEVICE constexpr std::uint32_t batch_room(
    std::uint32_t length, std::uint32_t longest_response = kLongestDigest) {
  return kFrameHeader + (length < longest_response ? longest_response : length);
}

/// Bytes of the table of lengths.
OFFLOAD_HOST_DEVICE constexpr std::uint32_t batch_table(std::uint32_t count) {
  return count * static_cast<std::uint32_t>(sizeof(std::uint16_t));
}

/// Whether a header may claim this: one message (`count` 0) or a batch.
OFFLOAD_HOST_DEVICE constexpr bool is_valid_content(const ChannelLayout& layout,
                                                    std::uint32_t length, std::uint32_t count) {
  if (count == 0) return length <= layout.max_request;
  return count <= kMaxBatchCount && length <= kMaxBatchContent && batch_table(count) <= length;
}

/// The memory that a group works in: shared memory on a GPU, one a warp or a block; the stack or a
/// member on a CPU. Blocks are read and written at multiples of 16 bytes from `bytes` and `frames`
/// on, which both are a whole number of.
struct alignas(16) Staging {
  /// A request's content as contiguous bytes, if it came in packets or is a batch.
  std::uint8_t before[kSlack];
  std::uint8_t bytes[kMaxBatchContent];
  std::uint8_t after[kSlack];
  /// The responses of a batch, and where the i-th request's payload is in `bytes` and its frame
  /// here. Behind the last: where both end.
  std::uint8_t frames[kMaxBatchContent];
  std::uint8_t after_frames[kSlack];
  std::uint16_t request_at[kMaxBatchCount + 1];
  std::uint16_t frame_at[kMaxBatchCount + 1];
  /// What index_batch() returned.
  std::uint32_t frames_length;
};
static_assert(kSlack % sizeof(Block) == 0 && kMaxBatchContent % sizeof(Block) == 0);
static_assert(sizeof(Staging) * kWarpsPerBlock <= 47 * 1024,
              "a GPU gives a block 48 KiB of static shared memory, of which groups take some too");

/// Writes the header of a frame to any address.
OFFLOAD_HOST_DEVICE inline void store_frame_header(std::uint8_t* to, FrameKind kind,
                                                   std::uint32_t length) {
  const Block block =
      reversed({{0, length, static_cast<std::uint32_t>(kind), kFrameHeader + length}});
  store_bytes(to, block, kFrameHeader);
}

/// The length of message `i`, as the table of the batch in the staging says. Not by a pointer to
/// std::uint16_t: the bytes were written as Block, and a compiler may take the two for unrelated.
OFFLOAD_HOST_DEVICE inline std::uint32_t length_in_table(const Staging& staging, std::uint32_t i) {
  const std::uint8_t* const at = staging.bytes + batch_table(i);
  return at[0] | static_cast<std::uint32_t>(at[1]) << 8;
}

/// Reads the table of the batch in the staging, and notes where each payload is and where each
/// frame goes. Returns the bytes of all frames, or 0 if it is no batch: trusts no length.
template <class Group, class Service>
OFFLOAD_HOST_DEVICE std::uint32_t index_batch(const Group& group, const Service& service,
                                              Staging& staging, std::uint32_t length,
                                              std::uint32_t count, std::uint32_t max_length) {
  // Each lane has an equal stretch of the table.
  const std::uint32_t stretch = (count + group.size() - 1) / group.size();
  const std::uint32_t begin = group.lane() * stretch < count ? group.lane() * stretch : count;
  const std::uint32_t end = begin + stretch < count ? begin + stretch : count;
  std::uint32_t requests = 0;
  std::uint32_t frames = 0;
  for (std::uint32_t i = begin; i < end; ++i) {
    const std::uint32_t own = length_in_table(staging, i);
    requests += own;
    frames += kFrameHeader + service.response_length(own);
  }
  // None of this overflows: 64 lengths of 64 KiB.
  std::uint32_t request_at = batch_table(count) + group.exclusive_sum(requests);
  std::uint32_t frame_at = group.exclusive_sum(frames);
  bool valid = request_at + requests <= length && frame_at + frames <= kMaxBatchContent;
  for (std::uint32_t i = begin; valid && i < end; ++i) {
    const std::uint32_t own = length_in_table(staging, i);
    valid = own <= max_length;
    staging.request_at[i] = static_cast<std::uint16_t>(request_at);
    staging.frame_at[i] = static_cast<std::uint16_t>(frame_at);
    request_at += own;
    frame_at += kFrameHeader + service.response_length(own);
  }
  if (begin < end && end == count) {
    valid = valid && request_at == length;
    staging.request_at[count] = static_cast<std::uint16_t>(request_at);
    staging.frame_at[count] = static_cast<std::uint16_t>(frame_at);
  }
  valid = group.all(valid);
  group.sync();
  return valid ? staging.frame_at[count] : 0;
}

/// How many of a group's `lanes` work on each of `count` messages of `bytes` altogether: so many
/// that a message of the mean length takes one block a lane.
OFFLOAD_HOST_DEVICE constexpr std::uint32_t lanes_for(std::uint32_t bytes, std::uint32_t count,
                                                      std::uint32_t lanes) {
  std::uint32_t tile = 1;
  while (tile < lanes && tile < 32 && tile * count * sizeof(Block) < bytes) tile *= 2;
  return tile;
}

/// How many lanes work on each message of a batch: the service's kLanes, 1 to 32 and a power of
/// two, if it has that; else as lanes_for() says.
template <class Service, class = void>
struct LanesOfService {
  OFFLOAD_HOST_DEVICE static constexpr std::uint32_t of(std::uint32_t bytes, std::uint32_t count,
                                                        std::uint32_t lanes) {
    return lanes_for(bytes, count, lanes);
  }
};
template <class Service>
struct LanesOfService<Service, std::void_t<decltype(Service::kLanes)>> {
  static_assert(Service::kLanes != 0 && Service::kLanes <= 32 &&
                    (Service::kLanes & (Service::kLanes - 1)) == 0,
                "a tile of a warp");
  OFFLOAD_HOST_DEVICE static constexpr std::uint32_t of(std::uint32_t, std::uint32_t,
                                                        std::uint32_t lanes) {
    return Service::kLanes < lanes ? Service::kLanes : lanes;
  }
};

/// Has `service` answer the batch that is indexed in the staging, from `content` to `frames`.
/// Called by every lane of the group.
template <class Group, class Service>
OFFLOAD_HOST_DEVICE void serve_batch(const Group& group, const Service& service,
                                     const Staging& staging, const std::uint8_t* content,
                                     std::uint8_t* frames, std::uint32_t length,
                                     std::uint32_t count) {
  const auto tile =
      group.tile(LanesOfService<Service>::of(length - batch_table(count), count, group.size()));
  for (std::uint32_t i = group.lane() / tile.size(); i < count; i += group.size() / tile.size()) {
    const std::uint32_t request = staging.request_at[i];
    std::uint8_t* const frame = frames + staging.frame_at[i];
    const std::uint32_t answered = staging.frame_at[i + 1] - staging.frame_at[i] - kFrameHeader;
    if (tile.lane() == 0) store_frame_header(frame, FrameKind::response, answered);
    service(tile, Request(content + request, staging.request_at[i + 1] - request),
            UnalignedResponse(frame + kFrameHeader, answered));
  }
  group.sync();
}

}  // namespace offload::kernels
