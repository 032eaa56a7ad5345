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

/// Returns the maximum number of bytes of a request of `length` in a batch's content, in either
/// direction: a response may have the longer of `length` and `longest_response` (services.hpp).
OFFLOAD_HOST_DEVICE constexpr std::uint32_t batch_room(
    std::uint32_t length, std::uint32_t longest_response = kLongestDigest) {
  return kFrameHeader + (length < longest_response ? longest_response : length);
}

/// Bytes of the table of lengths.
OFFLOAD_HOST_DEVICE constexpr std::uint32_t batch_table(std::uint32_t count) {
  return count * static_cast<std::uint32_t>(sizeof(std::uint16_t));
}

/// Returns whether a header may have these values: one message (`count` 0) of at most `longest`
/// bytes, or a batch.
OFFLOAD_HOST_DEVICE constexpr bool is_valid_content(std::uint32_t longest, std::uint32_t length,
                                                    std::uint32_t count) {
  if (count == 0) return length <= longest;
  return count <= kMaxBatchCount && length <= kMaxBatchContent && batch_table(count) <= length;
}

/// The memory that a group works in: on a GPU shared memory, one for each warp or block; on a CPU
/// the stack or a member. Blocks are read and written at multiples of 16 bytes from `bytes` and
/// `frames`, whose sizes are multiples of 16, too.
struct alignas(16) Staging {
  /// A request's content as contiguous bytes, if it came in packets or is a batch.
  std::uint8_t before[kSlack];
  std::uint8_t bytes[kMaxBatchContent];
  std::uint8_t after[kSlack];
  /// The responses of a batch, and the offsets of the i-th request's payload in `bytes` and of its
  /// frame here; after the last request, the ends of both.
  std::uint8_t frames[kMaxBatchContent];
  std::uint8_t after_frames[kSlack];
  std::uint16_t request_at[kMaxBatchCount + 1];
  std::uint16_t frame_at[kMaxBatchCount + 1];
  /// The result of index_batch().
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

/// Returns the length of message `i` in the table of the batch in the staging. It does not use a
/// pointer to std::uint16_t: the bytes were written as Block, and a compiler may assume that the
/// two do not alias.
OFFLOAD_HOST_DEVICE inline std::uint32_t length_in_table(const Staging& staging, std::uint32_t i) {
  const std::uint8_t* const at = staging.bytes + batch_table(i);
  return at[0] | static_cast<std::uint32_t>(at[1]) << 8;
}

/// Reads the table of the batch in the staging, and records the offset of each payload and of each
/// frame. Returns the bytes of all frames, or 0 if the table is invalid: it trusts no length.
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

/// Returns how many of a group's `lanes` process each of `count` messages of `bytes` in total:
/// enough for a message of the mean length to need one block for each lane.
OFFLOAD_HOST_DEVICE constexpr std::uint32_t lanes_for(std::uint32_t bytes, std::uint32_t count,
                                                      std::uint32_t lanes) {
  std::uint32_t tile = 1;
  while (tile < lanes && tile < 32 && tile * count * sizeof(Block) < bytes) tile *= 2;
  return tile;
}

/// The number of lanes for each message of a batch: the service's kLanes, a power of two from 1 to
/// 32, if it has that; else the result of lanes_for().
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

/// Lets `service` answer the batch that is indexed in the staging, from `content` to `frames`.
/// Every lane of the group must call it.
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
