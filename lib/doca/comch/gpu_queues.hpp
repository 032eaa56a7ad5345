#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "doca/comch/connection.hpp"
#include "doca/comch/link.hpp"
#include "doca/gpu/gpu.hpp"
#include "doca/gpu/mover.hpp"
#include "doca/gpu/ring.hpp"
#include "doca/mmap.hpp"

namespace offload::doca {

/// The common part of a consumer's and a producer's data path on a GPU: the rings, and their state.
/// The context's thread begins and ends it; between them the rings are the mover's.
class GpuPath : protected GpuQueue {
 public:
  GpuPath(doca_gpu& gpu, std::uint32_t entries)
      : gpu_(gpu), mover_(gpu.mover()), ring_(gpu, entries) {}
  GpuPath& operator=(GpuPath&&) = delete;

  [[nodiscard]] void* handle() const noexcept { return ring_.handle(); }
  /// Returns whether it has failed; why() says why. Any thread.
  [[nodiscard]] bool has_failed() const noexcept {
    return has_failed_.load(std::memory_order_acquire);  // pairs with fail()
  }
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

 protected:
  ~GpuPath() = default;

  void fail(const char* why) noexcept final;
  /// Keeps the reason of a failure that publish_failure() shows to the kernel in the same turn.
  void keep_failure(const char* why) noexcept;
  void publish_failure() noexcept;

  GpuUse gpu_;
  GpuMover& mover_;
  GpuRing ring_;
  bool is_failing_ = false;  ///< keep_failure() was called

 private:
  std::string why_;
  std::atomic<bool> has_failed_{false};
};

/// Receives messages of a link into the buffers that a kernel posts.
class GpuReceiver final : public GpuPath {
 public:
  /// `key`: of the mmap whose buffers may be posted.
  GpuReceiver(doca_gpu& gpu, std::uint32_t entries, std::uint32_t key)
      : GpuPath(gpu, entries), key_(key) {}
  ~GpuReceiver() { end(); }

  void begin(std::unique_ptr<Link> link);
  /// Ends the calls of kernels with DOCA_ERROR_BAD_STATE, and closes the link.
  void end() noexcept;

 private:
  struct Posted {
    offload_gpu_comch_request request;
    MemoryUse memory;
  };

  bool gather(GpuStaging& staging) noexcept override;
  bool pass_on() noexcept override;
  bool read_posts();
  bool receive_one(GpuStaging& staging);
  bool begin_message();

  std::uint32_t key_;
  std::unique_ptr<Link> link_;
  std::deque<Posted> posted_;
  std::size_t received_ = 0;                     ///< of posted_: their copies are under way
  offload_gpu_comch_event event_{};              ///< of the message that is arriving
  std::vector<offload_gpu_comch_event> events_;  ///< of the received ones
  FrameHead head_;
  bool has_head_ = false;
  bool is_in_message_ = false;
  std::size_t arrived_ = 0;  ///< bytes of the message
};

/// Sends the messages of a kernel, in order.
class GpuSender final : public GpuPath {
 public:
  GpuSender(doca_gpu& gpu, std::uint32_t entries) : GpuPath(gpu, entries) {}
  ~GpuSender() { abandon(); }

  /// `connection` lives until the end.
  void begin(ComchConnection& connection, std::uint32_t producer);
  /// Ends the calls of kernels with DOCA_ERROR_BAD_STATE, and drops the messages that have not
  /// begun. The context's thread sends the rest of one that has.
  void end() noexcept;
  /// Fails it, as the peer is gone. The context's thread.
  void lose() noexcept;
  /// Returns whether a message is being sent; it may become false on another producer's thread.
  [[nodiscard]] bool is_sending() const noexcept;
  /// Continues the message after end(). Returns whether there was progress.
  bool flush() noexcept;
  /// Ends at once, and closes the stream of a message that is being sent.
  void abandon() noexcept;

 private:
  /// A message, and its bytes as far as they were copied from the GPU.
  struct Outgoing {
    Outgoing(const offload_gpu_comch_request& sent, MemoryUse use)
        : request(sent),
          memory(std::move(use)),
          bytes(std::make_unique_for_overwrite<std::byte[]>(sent.length)) {}
    [[nodiscard]] std::size_t length() const noexcept { return request.length; }

    offload_gpu_comch_request request;
    MemoryUse memory;
    std::unique_ptr<std::byte[]> bytes;
    std::size_t asked = 0;                     ///< bytes whose copies have begun
    std::size_t copied = 0;                    ///< bytes that are in `bytes`
    std::shared_ptr<RemoteConsumer> consumer;  ///< since the sending has begun
    std::atomic<RemoteConsumer::Progress> progress{};
  };
  /// A copy to staging memory that is under way.
  struct Copy {
    Outgoing* of;
    std::span<const std::byte> from;
  };

  bool gather(GpuStaging& staging) noexcept override;
  bool pass_on() noexcept override;
  bool read_sends();
  void begin_copies(GpuStaging& staging);
  /// Continues the oldest message. Returns whether it has ended.
  bool send_oldest();

  ComchConnection* connection_ = nullptr;
  std::uint32_t producer_ = 0;
  std::deque<Outgoing> outgoing_;
  std::size_t kept_ = 0;  ///< bytes of them
  std::vector<Copy> copies_;
};

}  // namespace offload::doca
