#pragma once

#include <infiniband/verbs.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace offload::rdma {

class RdmaTask;

/// A ring of the tasks of a send or receive queue, in order, with their work requests:
///
///   done ... | head_: posted, outstanding | posted_: to be posted | tail_
///
/// The lower 31 bits of a wr_id number the work requests, modulo 2^31, so that a late completion of
/// former work matches none. `Request`: ibv_send_wr or ibv_recv_wr. Allocates only in the
/// constructor. One thread.
template <class Request>
class WorkQueue {
 public:
  /// For `max_wr` tasks of at most `max_sge` scatter/gather elements each. `first`: the number of
  /// the first; a test begins shortly before they wrap.
  WorkQueue(std::uint32_t max_wr, std::uint32_t max_sge, std::uint64_t first = 0)
      : max_wr_(max_wr),
        max_sge_(max_sge),
        requests_(std::bit_ceil(std::size_t{max_wr})),
        tasks_(requests_.size()),
        elements_(requests_.size() * max_sge),
        slot_mask_(requests_.size() - 1),
        head_(first),
        posted_(first),
        tail_(first) {
    for (std::size_t i = 0; i != requests_.size(); ++i) {
      requests_[i].sg_list = elements_.data() + i * max_sge;
    }
  }

  [[nodiscard]] bool is_full() const noexcept { return tail_ - head_ == max_wr_; }
  [[nodiscard]] std::size_t outstanding() const noexcept { return posted_ - head_; }
  [[nodiscard]] std::size_t size() const noexcept { return tail_ - head_; }
  [[nodiscard]] std::size_t max_wr() const noexcept { return max_wr_; }

  /// Returns a work request without elements or flags for the next task, unless it is full. Fields
  /// that its opcode does not use have values of an earlier task. add() makes it count.
  [[nodiscard]] Request& next(std::uint64_t id_base) noexcept {
    Request& request = at(tail_);
    request.wr_id = id_base | (tail_ & kMask);
    request.num_sge = 0;
    if constexpr (requires { request.send_flags; }) request.send_flags = 0;
    return request;
  }
  [[nodiscard]] std::size_t max_sge() const noexcept { return max_sge_; }
  /// The scatter/gather elements of next().
  [[nodiscard]] std::span<ibv_sge> sg_list() noexcept {
    return std::span(elements_).subspan(slot(tail_) * max_sge_, max_sge_);
  }
  void add(RdmaTask& task) noexcept { tasks_.data()[slot(tail_++)] = &task; }

  [[nodiscard]] bool has_unposted() const noexcept { return posted_ != tail_; }
  /// Links the requests to be posted into a list, whose last is `last`. Null if there are none.
  [[nodiscard]] Request* unposted(Request*& last) noexcept {
    if (posted_ == tail_) return nullptr;
    for (std::uint64_t i = posted_; i + 1 != tail_; ++i) {
      at(i).next = &at(i + 1);
    }
    last = &at(tail_ - 1);
    last->next = nullptr;
    return &at(posted_);
  }
  /// Counts them as posted. Returns their number.
  std::size_t mark_posted() noexcept {
    const std::uint64_t count = tail_ - posted_;
    posted_ = tail_;
    return count;
  }
  /// Drops the requests to be posted.
  void drop_unposted() noexcept { tail_ = posted_; }
  void clear() noexcept { head_ = posted_ = tail_; }

  /// Returns the number of tasks that the completion of a number ends: all up to it; 0 for a number
  /// that is not outstanding.
  [[nodiscard]] std::size_t count_up_to(std::uint32_t number) const noexcept {
    const std::uint64_t distance = (number - head_) & kMask;
    return distance < outstanding() ? distance + 1 : 0;
  }
  /// Removes the oldest task. There must be one.
  [[nodiscard]] RdmaTask& pop() noexcept {
    RdmaTask& task = *tasks_.data()[slot(head_++)];
    if (posted_ < head_) posted_ = head_;
    return task;
  }

 private:
  static constexpr std::uint64_t kMask = 0x7fff'ffff;

  /// The number of slots is a power of two, which spares the data path divisions.
  [[nodiscard]] std::size_t slot(std::uint64_t number) const noexcept {
    return number & slot_mask_;
  }
  /// Without the library's bounds check: a slot is within.
  [[nodiscard]] Request& at(std::uint64_t number) noexcept {
    return requests_.data()[slot(number)];
  }

  std::size_t max_wr_;
  std::size_t max_sge_;
  std::vector<Request> requests_;
  std::vector<RdmaTask*> tasks_;
  std::vector<ibv_sge> elements_;
  std::uint64_t slot_mask_;
  std::uint64_t head_;
  std::uint64_t posted_;
  std::uint64_t tail_;
};

}  // namespace offload::rdma
