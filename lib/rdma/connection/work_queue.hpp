#pragma once

#include <infiniband/verbs.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace offload::rdma {

class Operation;

/// The tasks of one queue of a queue pair, in their order, with the work requests made of them:
///
///   done ... | head: posted, under way | posted: prepared | tail
///
/// Numbers count on for good and wrap around at 2^31: what is told of former work is recognised.
/// `Request`: ibv_send_wr or ibv_recv_wr. Nothing is allocated after the constructor.
template <class Request>
class WorkQueue {
 public:
  /// `depth`: the room for tasks; `pieces`: of memory for each.
  WorkQueue(std::uint32_t depth, std::uint32_t pieces)
      : depth_(depth),
        pieces_(pieces),
        requests_(std::bit_ceil(std::size_t{depth})),
        tasks_(requests_.size()),
        memory_(requests_.size() * pieces) {}

  [[nodiscard]] bool is_full() const noexcept { return tail_ - head_ == depth_; }
  [[nodiscard]] std::size_t under_way() const noexcept { return posted_ - head_; }
  [[nodiscard]] std::size_t size() const noexcept { return tail_ - head_; }
  [[nodiscard]] std::size_t depth() const noexcept { return depth_; }

  /// The request for the next task, if it is not full; nothing happens unless it is added.
  [[nodiscard]] Request& next(std::uint64_t id_base) noexcept {
    Request& request = requests_[place(tail_)];
    request = {};
    request.wr_id = id_base | (tail_ & kMask);
    request.sg_list = pieces().data();
    return request;
  }
  /// The memory that it may name.
  [[nodiscard]] std::span<ibv_sge> pieces() noexcept {
    return std::span(memory_).subspan(place(tail_) * pieces_, pieces_);
  }
  void add(Operation& task) noexcept { tasks_[place(tail_++)] = &task; }

  /// The requests that are not posted yet as one list, the last of them in `last`; null if there is
  /// none.
  [[nodiscard]] Request* unposted(Request*& last) noexcept {
    if (posted_ == tail_) return nullptr;
    for (std::uint64_t i = posted_; i + 1 != tail_; ++i) {
      requests_[place(i)].next = &requests_[place(i + 1)];
    }
    last = &requests_[place(tail_ - 1)];
    last->next = nullptr;
    return &requests_[place(posted_)];
  }
  /// They are. Returns how many.
  std::size_t mark_posted() noexcept {
    const std::uint64_t count = tail_ - posted_;
    posted_ = tail_;
    return count;
  }
  /// Forgets what is not posted.
  void drop_unposted() noexcept { tail_ = posted_; }
  void clear() noexcept { head_ = posted_ = tail_; }

  /// How many tasks end with the one of that number, it included; 0 if it is not under way.
  [[nodiscard]] std::size_t count_up_to(std::uint32_t number) const noexcept {
    const std::uint64_t distance = (number - head_) & kMask;
    return distance < under_way() ? distance + 1 : 0;
  }
  /// Takes the oldest, if there is one.
  [[nodiscard]] Operation& pop() noexcept {
    Operation& task = *tasks_[place(head_++)];
    if (posted_ < head_) posted_ = head_;
    return task;
  }

 private:
  static constexpr std::uint64_t kMask = 0x7fff'ffff;

  /// Places are a power of two, as every message looks for several: no division.
  [[nodiscard]] std::size_t place(std::uint64_t number) const noexcept {
    return number & (tasks_.size() - 1);
  }

  std::size_t depth_;
  std::size_t pieces_;
  std::vector<Request> requests_;
  std::vector<Operation*> tasks_;
  std::vector<ibv_sge> memory_;
  std::uint64_t head_ = 0;
  std::uint64_t posted_ = 0;
  std::uint64_t tail_ = 0;
};

}  // namespace offload::rdma
