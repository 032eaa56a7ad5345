#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

/// libibverbs without a device: the test program's own definitions of its functions, which the
/// linker takes before the library's. Objects are counted, and any call can be made to fail.
namespace offload::rdma::test {

/// A work request as it was posted.
struct Posted {
  ibv_send_wr send{};  ///< of a receive, wr_id alone
  std::vector<ibv_sge> pieces;
  std::vector<std::byte> inlined;  ///< the bytes of a send with IBV_SEND_INLINE
};

struct FakeQueuePair {
  ibv_qp native{};                    ///< first: a pointer to it is one to this
  ibv_qp_attr attributes{};           ///< of the latest ibv_modify_qp: what its mask names
  std::vector<ibv_qp_attr> modified;  ///< of each
  int mask = 0;                       ///< of the latest
  ibv_qp_init_attr initial{};
  std::deque<Posted> sends;
  std::deque<Posted> receives;
};

/// The state and behaviour of the fake device. There is one for each test: reset() starts again.
struct FakeVerbs {
  // Its properties.
  int devices = 1;
  ibv_device_attr device{};
  ibv_port_attr port{};
  std::vector<ibv_gid_entry> gids;
  std::vector<std::uint16_t> pkeys{0xffff};  ///< in the host's byte order

  // The calls and objects so far.
  std::map<std::string, int> open;  ///< objects not ended yet, by kind
  std::vector<std::string> calls;   ///< those that can fail, in order
  std::vector<FakeQueuePair*> queue_pairs;
  std::deque<ibv_wc> completions;
  std::deque<Posted> shared_receives;
  int doorbells = 0;
  int arms = 0;
  std::deque<ibv_async_event> async_events;
  int acknowledged = 0;
  ibv_cq* rung = nullptr;  ///< the subject of the next event
  ibv_srq_attr shared_attributes{};
  ibv_ah_attr path{};  ///< of the latest ibv_create_ah

  // The calls that fail.
  int fail_at = -1;       ///< the number of the call, from 0
  std::string fail_call;  ///< each call of this name
  int fail_with = EIO;

  [[nodiscard]] int open_objects() const;
  /// Finishes the first send posted; it is reported only if it is signalled or fails.
  void finish_send(FakeQueuePair& queue, ibv_wc_status status = IBV_WC_SUCCESS);
  /// Lets a message of `length` bytes take the first receive posted.
  void finish_receive(FakeQueuePair& queue, ibv_wc told);
  /// Returns whether a completion is for that queue; one without a queue pair is for any.
  [[nodiscard]] bool is_for(const ibv_wc& completion, const ibv_cq* cq) const {
    for (const FakeQueuePair* each : queue_pairs) {
      if (each->native.qp_num != completion.qp_num) continue;
      const bool came = (completion.opcode & IBV_WC_RECV) != 0;
      return (came ? each->initial.recv_cq : each->initial.send_cq) == cq;
    }
    return true;
  }
  /// Adds an event to the completion channel, as after an arming.
  void ring();
  void add_async_event(ibv_async_event event);

  // The functions of a device behind the fake; an empty one is not called.
  std::function<void()> on_poll;                   ///< before completions are taken
  std::function<void(FakeQueuePair&)> on_modify;   ///< after a queue pair was modified
  std::function<void(FakeQueuePair&)> on_destroy;  ///< before a queue pair ends
  /// Makes both keys of memory that is registered.
  std::function<std::uint32_t(void* address, std::size_t length)> make_key;
  std::uint32_t first_number = 100;  ///< of queue pairs

  /// Called with each device that is opened, to add functions beyond the calls below; null: none.
  void (*extend)(verbs_context& context) = nullptr;

  int completion_pipe[2] = {-1, -1};
  int async_pipe[2] = {-1, -1};
};

FakeVerbs& fake();
void reset_fake();
/// Locked by each call of a data path and by changes of queue pairs: a test whose library has a
/// thread for them locks it around the fake's members, and on_poll has it.
std::recursive_mutex& fake_mutex();

}  // namespace offload::rdma::test
