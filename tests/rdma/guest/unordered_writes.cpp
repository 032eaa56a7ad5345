#include "tests/rdma/guest/unordered_writes.hpp"

#include <dlfcn.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace offload::rdma::test {
namespace {

/// Work requests of a write: two pieces, and the one without data.
constexpr int kMostSteps = 3;
/// The minimum number of bytes placed at once.
constexpr std::uint32_t kWord = 8;

using PostSend = int (*)(ibv_qp*, ibv_send_wr*, ibv_send_wr**);

/// The device's own, which all its contexts have. Set before there is a queue pair to post to.
PostSend device_post_send = nullptr;
std::atomic<std::uint64_t> pieces_before_earlier_ones;  // a count alone

std::uint32_t random_number() {
  thread_local std::minstd_rand source;
  return static_cast<std::uint32_t>(source());
}

/// The form in which a list of work requests is posted.
class Steps {
 public:
  void add(const ibv_send_wr& request) {
    const bool is_write =
        request.opcode == IBV_WR_RDMA_WRITE || request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    if (is_write && request.num_sge == 1 && request.sg_list->length != 0) {
      add_write(request);
    } else {
      steps_.push_back({latest_, request, {}});
      earliest_ = latest_;
    }
  }
  int post(ibv_qp* queue_pair, ibv_send_wr** refused) {
    std::stable_sort(steps_.begin(), steps_.end(),
                     [](const Step& one, const Step& other) { return one.place < other.place; });
    for (Step& step : steps_) {
      step.request.next = nullptr;
      if (step.data.length != 0) step.request.sg_list = &step.data;
      const int errnum = device_post_send(queue_pair, &step.request, refused);
      if (errnum != 0) return errnum;
      std::this_thread::yield();  // so that the peer looks in between
    }
    return 0;
  }

 private:
  struct Step {
    std::uint64_t place;  ///< they are posted in the order of it
    ibv_send_wr request;
    ibv_sge data;  ///< of a piece
  };

  void add_write(const ibv_send_wr& write) {
    const ibv_sge& data = *write.sg_list;
    const std::uint32_t cuts = (data.length - 1) / kWord;
    const std::uint32_t cut = cuts == 0 ? 0 : kWord * (1 + random_number() % cuts);
    if (cut != 0) add_piece(write, 0, cut);
    add_piece(write, cut, data.length - cut);
    const bool has_immediate = write.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    if (!has_immediate && (write.send_flags & IBV_SEND_SIGNALED) == 0) return;
    Step& last = steps_.emplace_back(Step{latest_, write, {}});
    last.request.num_sge = 0;
    last.request.send_flags &= ~static_cast<unsigned>(IBV_SEND_INLINE);
  }
  void add_piece(const ibv_send_wr& write, std::uint32_t offset, std::uint32_t length) {
    const std::uint64_t place = earliest_ + random_number();
    if (place < latest_) ++pieces_before_earlier_ones;
    latest_ = std::max(latest_, place);
    Step& piece = steps_.emplace_back(Step{place, write, *write.sg_list});
    piece.data.addr += offset;
    piece.data.length = length;
    piece.request.opcode = IBV_WR_RDMA_WRITE;
    piece.request.wr.rdma.remote_addr += offset;
    piece.request.send_flags &= IBV_SEND_INLINE | IBV_SEND_FENCE;
  }

  std::vector<Step> steps_;
  std::uint64_t earliest_ = 0;  ///< place of the last operation of another kind
  std::uint64_t latest_ = 0;    ///< greatest place so far
};

int post_send(ibv_qp* queue_pair, ibv_send_wr* list, ibv_send_wr** refused) {
  if (random_number() % 2 == 0) return device_post_send(queue_pair, list, refused);
  Steps steps;
  for (const ibv_send_wr* request = list; request != nullptr; request = request->next) {
    steps.add(*request);
  }
  const int errnum = steps.post(queue_pair, refused);
  // The posted part of the list is unknown. A connection ends with such an error.
  if (errnum != 0) *refused = list;
  return errnum;
}

template <class Function>
Function* library_function(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

[[gnu::destructor]] void print_count() {
  if (device_post_send == nullptr) return;
  std::fprintf(stderr, "unordered writes: %llu pieces before earlier ones\n",
               static_cast<unsigned long long>(unordered_pieces()));
}

}  // namespace

std::uint64_t unordered_pieces() noexcept {
  return pieces_before_earlier_ones;
}

}  // namespace offload::rdma::test

namespace test = offload::rdma::test;

extern "C" {

/// After an error every work request completes, each piece too.
ibv_cq* ibv_create_cq(ibv_context* context, int depth, void* user, ibv_comp_channel* channel,
                      int vector) {
  static auto* const create = test::library_function<decltype(ibv_create_cq)>("ibv_create_cq");
  return create(context, test::kMostSteps * depth, user, channel, vector);
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* attributes) {
  static auto* const create = test::library_function<decltype(ibv_create_qp)>("ibv_create_qp");
  if (attributes->sq_sig_all != 0) std::abort();  // pieces would complete
  attributes->cap.max_send_wr *= test::kMostSteps;
  ibv_qp* const made = create(domain, attributes);
  attributes->cap.max_send_wr /= test::kMostSteps;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (test::device_post_send == nullptr) {
    test::device_post_send = domain->context->ops.post_send;
  }
  domain->context->ops.post_send = &test::post_send;
  return made;
}

}  // extern "C"
