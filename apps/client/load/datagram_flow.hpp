#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/client/load/flow.hpp"
#include "core/clock.hpp"
#include "core/fd.hpp"
#include "core/intrusive_list.hpp"
#include "net/socket.hpp"
#include "progress/engine.hpp"
#include "protocol/datagram.hpp"

namespace offload::client {

/// A socket that sends to `address` alone, where a request of `longest` bytes of frame fits in one
/// datagram; with room for answers to `in_flight`, as far as the system gives it. Throws Error:
/// invalid_value if it does not fit.
core::Fd open_datagram_socket(const net::SocketAddress& address, std::size_t longest,
                              std::uint32_t in_flight);

/// A flow over a UDP socket: each request is a datagram with a unique sequence, which identifies
/// its answer whatever the order of answers. A request without an answer is sent again after the
/// response time-out, or is lost. A second answer to a request is a duplicate; an answer to a lost
/// one is late. One system call sends a batch, and one receives all answers that have come.
class DatagramFlow final : progress::EventHandler, public Flow {
 public:
  /// See Flow. `socket`: made by open_datagram_socket().
  DatagramFlow(std::string name, std::uint32_t number, core::Fd socket, LoadShare& share);

  void start() override { go_on(); }
  void stop_sending() noexcept override;
  /// The oldest request in flight has waited for the time-out.
  [[nodiscard]] core::TimePoint deadline() const noexcept override;
  void on_deadline(core::TimePoint now) override;
  void log_unanswered() override;

  /// Bytes of LoadShare::datagrams for responses of `longest` bytes.
  static std::size_t receive_room(std::size_t longest) noexcept;

 private:
  /// Datagrams of a system call.
  static constexpr std::uint32_t kBatch = 32;

  /// A place for a request in flight. Its sequences are its index, and that and multiples of the
  /// number of slots: one for each of its requests.
  struct Slot : core::ListNode<Slot> {
    Pending request;
    core::TimePoint last_sent;
    std::uint64_t sequence = 0;  ///< of the request that has it, or had it last
    std::uint64_t lost = 0;      ///< bit i: the request that was i before that is lost
    std::uint32_t sent_again = 0;
    bool in_flight = false;
  };
  using Slots = core::IntrusiveList<Slot>;
  struct Message {
    std::array<std::byte, protocol::kSequenceSize> sequence;
    std::array<iovec, 2> pieces;
  };

  void on_events(std::uint32_t epoll_events) override;
  void go_on() override;
  [[nodiscard]] std::uint32_t next_batch() const noexcept override;
  void start_batch(std::uint32_t count) override;
  void add_message(const Slot& slot);
  bool flush() override;
  void note_error(int errnum);
  void watch_for_room(bool wanted);
  bool receive();
  void take(std::span<const std::byte> datagram);
  void take_again(std::uint64_t sequence);
  void take_answer(Slot& slot, std::span<const std::byte> frame);
  void free_slot(Slot& slot);
  void lose(Slot& slot);
  void end() noexcept override {
    if (set_over()) share_.engine.unwatch(socket_.get(), *this);
  }

  core::Fd socket_;
  std::vector<Slot> slots_;  ///< as many as may be in flight, to a power of two
  Slots free_;               ///< the one that is free for the longest first
  Slots waiting_;            ///< in flight, in the order of their last sending
  std::uint32_t free_count_;
  std::array<Message, kBatch> messages_;
  std::array<mmsghdr, kBatch> headers_{};
  std::uint32_t message_count_ = 0;
  std::uint32_t next_message_ = 0;  ///< the first that was not sent
  std::size_t slot_size_;           ///< of LoadShare::datagrams, bytes of one
  bool watches_for_room_ = false;
  std::string send_error_;  ///< the last one
};

}  // namespace offload::client
