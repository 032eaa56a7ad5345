#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/kernels/bodies/runner_suite.hpp"
#include "tests/kernels/rdma/model_card.hpp"
#include "tests/rdma_tasks/kernels/operations_body.hpp"

/// Runs the operations by threads, warps and blocks, on exclusive queues and on shared ones, with
/// the model of a card behind them. A runner selects where the groups run and which memory they
/// use.
namespace offload::kernels::rdma::test {

/// The queues and memory of some groups. Each group's queue sends to a peer whose receives are the
/// group's too, so that the group sees both ends.
template <class Runner, class Queue>
class Parties {
 public:
  struct Sizes {
    std::uint32_t groups = 1;
    std::uint32_t blocks = 8;
    std::uint32_t bytes = 64;
    bool has_record = true;
  };

  Parties(ModelCard& card, const Sizes& sizes)
      : sizes_(sizes),
        memory_(sizes.groups * bytes_of_group()),
        queues_(2 * sizes.groups * queue_bytes()),
        scratch_(sizes.groups * scratch_bytes()),
        parties_(sizes.groups * sizeof(Party<Queue>)) {
    const std::uint32_t key = card.add_memory(memory_.data(), sizes.groups * bytes_of_group());
    for (std::uint32_t i = 0; i < sizes.groups; ++i) {
      std::uint8_t* const queues = queues_.data() + 2 * i * queue_bytes();
      const auto one = card.add(queues, sizes.blocks, kReceives, sizes.has_record);
      const auto other = card.add(queues + queue_bytes(), sizes.blocks, kReceives);
      card.connect(one, other);
      std::uint8_t* const bytes = memory_.data() + i * bytes_of_group();
      Party<Queue>& party = parties()[i];
      party.queue = make_queue(one.send, scratch_.data() + i * scratch_bytes());
      party.receives = other.receive;
      party.words = reinterpret_cast<std::uint64_t*>(bytes);
      party.from = bytes + kWords * sizeof(std::uint64_t);
      party.back = party.from + area();
      party.there = party.back + area();
      party.key = key;
    }
  }

  [[nodiscard]] Party<Queue>* parties() const {
    return reinterpret_cast<Party<Queue>*>(parties_.data());
  }

 private:
  static constexpr std::uint32_t kReceives = 4;
  static constexpr std::uint32_t kWords = 16;

  [[nodiscard]] std::size_t area() const { return (sizes_.bytes + 63U) / 64 * 64; }
  [[nodiscard]] std::size_t bytes_of_group() const {
    return 3 * area() + kWords * sizeof(std::uint64_t);
  }
  [[nodiscard]] std::size_t queue_bytes() const {
    return ModelCard::bytes_for(sizes_.blocks, kReceives);
  }
  [[nodiscard]] std::size_t scratch_bytes() const {
    return (sizeof(SharedSendState) + sizes_.blocks * sizeof(std::uint64_t) + 63) / 64 * 64;
  }
  static auto make_queue(const SendQueue& send, std::uint8_t* scratch) {
    if constexpr (std::is_same_v<Queue, SharedQueue>) {
      auto* const state = reinterpret_cast<SharedSendState*>(scratch);
      return SharedQueue{send, state, reinterpret_cast<std::uint64_t*>(state + 1)};
    } else {
      return ExclusiveQueue{send, {}, {}};
    }
  }

  Sizes sizes_;
  typename Runner::Memory memory_;
  typename Runner::Memory queues_;
  typename Runner::Scratch scratch_;
  typename Runner::Memory parties_;
};

/// An array of a runner's memory.
template <class T, class Runner>
class Shown {
 public:
  explicit Shown(std::size_t count) : memory_(count * sizeof(T)) {}
  [[nodiscard]] T* get() const { return reinterpret_cast<T*>(memory_.data()); }
  [[nodiscard]] T& operator[](std::size_t i) const { return get()[i]; }

 private:
  typename Runner::Memory memory_;
};

template <class Queue, class Runner>
void check_every_operation(const typename Parties<Runner, Queue>::Sizes& sizes,
                           std::uint32_t rounds, std::uint32_t seed) {
  SCOPED_TRACE("bytes " + std::to_string(sizes.bytes) + ", seed " + std::to_string(seed));
  ModelCard card(seed);
  Parties<Runner, Queue> parties(card, sizes);
  Shown<Report, Runner> reports(sizes.groups);
  card.start();
  Runner::run(sizes.groups,
              EveryOperation<Queue>{parties.parties(), reports.get(), sizes.bytes, rounds});
  EXPECT_EQ(card.stop(), "");
  for (std::uint32_t i = 0; i < sizes.groups; ++i) {
    EXPECT_EQ(reports[i].step, 0U)
        << "group " << i << ", result " << static_cast<int>(reports[i].result) << ", "
        << words_of(reports[i].error.syndrome());
  }
}

template <class Runner>
class RdmaOperations : public kernels::test::RunnerSuite<Runner> {};
TYPED_TEST_SUITE_P(RdmaOperations);

TYPED_TEST_P(RdmaOperations, OnAQueueOfItsOwn) {
  for (const std::uint32_t bytes : {0U, 1U, 64U, 4097U}) {
    check_every_operation<ExclusiveQueue, TypeParam>({1, 8, bytes}, TypeParam::kRounds,
                                                     ModelCard::kPolite);
  }
  check_every_operation<ExclusiveQueue, TypeParam>({1, 8, TypeParam::kLargest}, 1, 3);
}

TYPED_TEST_P(RdmaOperations, OnASharedQueue) {
  for (const std::uint32_t bytes : {0U, 64U}) {
    check_every_operation<SharedQueue, TypeParam>({1, 8, bytes}, TypeParam::kRounds,
                                                  ModelCard::kPolite);
  }
  check_every_operation<SharedQueue, TypeParam>({1, 8, TypeParam::kLargest}, 1, 4);
}

TYPED_TEST_P(RdmaOperations, BesideOthersAndARudeCard) {
  for (const std::uint32_t seed : {1U, 2U}) {
    check_every_operation<ExclusiveQueue, TypeParam>({TypeParam::kGroups, 16, 130},
                                                     TypeParam::kRounds, seed);
    check_every_operation<SharedQueue, TypeParam>({TypeParam::kGroups, 16, 130}, TypeParam::kRounds,
                                                  seed);
  }
}

TYPED_TEST_P(RdmaOperations, WithADoorbellAlone) {
  check_every_operation<ExclusiveQueue, TypeParam>({1, 8, 24, false}, TypeParam::kRounds, 5);
  check_every_operation<SharedQueue, TypeParam>({1, 8, 24, false}, TypeParam::kRounds, 6);
}

// Each entry is carried out once, in its turn, whichever groups post at the same time.
TYPED_TEST_P(RdmaOperations, ManyGroupsPostToOneQueue) {
  for (const std::uint32_t seed : {ModelCard::kPolite, 7U}) {
    ModelCard card(seed);
    Parties<TypeParam, SharedQueue> parties(card, {1, 16, 64});
    const std::uint32_t rounds = TypeParam::kSharedRounds;
    const std::size_t places = std::size_t{TypeParam::kGroups} * rounds * SharedAdds::kMost;
    Shown<std::uint64_t, TypeParam> found(places + 1);
    Shown<Report, TypeParam> reports(TypeParam::kGroups);
    std::fill_n(found.get(), places, ~std::uint64_t{0});
    const std::uint32_t key = card.add_memory(found.get(), (places + 1) * sizeof(std::uint64_t));
    card.start();
    TypeParam::run(TypeParam::kGroups, SharedAdds{parties.parties()[0].queue, reports.get(),
                                                  &found[places], found.get(), key, rounds});
    EXPECT_EQ(card.stop(), "");
    for (std::uint32_t i = 0; i < TypeParam::kGroups; ++i) ASSERT_EQ(reports[i].step, 0U) << i;
    std::vector<std::uint64_t> values(found.get(), found.get() + places);
    std::sort(values.begin(), values.end());
    ASSERT_LE(found[places], places);
    ASSERT_GT(found[places], 0U);
    for (std::uint64_t i = 0; i < found[places]; ++i) ASSERT_EQ(values[i], i);
    EXPECT_TRUE(found[places] == places || values[found[places]] == ~std::uint64_t{0});
  }
}

TYPED_TEST_P(RdmaOperations, LeaveWhenNobodyAnswers) {
  const auto check = [](auto queue) {
    using Queue = decltype(queue);
    ModelCard card;  // not started
    Parties<TypeParam, Queue> parties(card, {1, 4, 64});
    Shown<WorkResult, TypeParam> results(4);
    Shown<std::uint32_t, TypeParam> stop(1);
    stop[0] = 1;
    TypeParam::run(1, Unanswered<Queue>{parties.parties(), results.get(), stop.get()});
    EXPECT_EQ(results[0], WorkResult::done);
    for (const std::size_t i : {1U, 2U, 3U}) EXPECT_EQ(results[i], WorkResult::timed_out) << i;
  };
  check(ExclusiveQueue{});
  check(SharedQueue{});
}

struct RefusedCase {
  const char* name;
  Opcode opcode;
  std::uint32_t length;
  std::uint32_t wrong_lkey;
  std::uint32_t remote_offset;
  bool readable_alone;
  Syndrome syndrome;
};

TYPED_TEST_P(RdmaOperations, LearnWhyTheyFail) {
  const RefusedCase cases[] = {
      {"local key", Opcode::rdma_write, 8, 1, 0, false, Syndrome::local_protection},
      {"local length", Opcode::fetch_add, 4, 0, 0, false, Syndrome::local_length},
      {"beyond the peer's", Opcode::rdma_write, 8, 0, 1U << 20, false, Syndrome::remote_access},
      {"peer's rights", Opcode::rdma_write, 8, 0, 0, true, Syndrome::remote_access},
      {"alignment", Opcode::fetch_add, 8, 0, 4, false, Syndrome::remote_invalid_request},
      {"no receive", Opcode::send, 8, 0, 0, false, Syndrome::receiver_not_ready}};
  const auto check = [&](auto queue, const RefusedCase& refused) {
    using Queue = decltype(queue);
    SCOPED_TRACE(refused.name);
    ModelCard card;
    card.set_fail_without_receive();
    Parties<TypeParam, Queue> parties(card, {1, 8, 64});
    const Party<Queue>& party = parties.parties()[0];
    const std::uint32_t readable = card.add_readable(party.there, 64);
    const std::uint32_t key = refused.readable_alone ? readable : party.key;
    Shown<WorkResult, TypeParam> results(2);
    Shown<QueueError, TypeParam> error(1);
    card.start();
    TypeParam::run(
        1, Refused<Queue>{parties.parties(),
                          refused.opcode,
                          {address_of(party.from), refused.length, party.key + refused.wrong_lkey},
                          {address_of(party.there) + refused.remote_offset, key},
                          results.get(),
                          error.get()});
    EXPECT_EQ(card.stop(), "");
    EXPECT_EQ(results[0], WorkResult::failed);
    EXPECT_EQ(results[1], WorkResult::failed);
    EXPECT_EQ(error[0].syndrome(), refused.syndrome) << words_of(error[0].syndrome());
  };
  for (const RefusedCase& refused : cases) {
    check(ExclusiveQueue{}, refused);
    check(SharedQueue{}, refused);
  }
}

REGISTER_TYPED_TEST_SUITE_P(RdmaOperations, OnAQueueOfItsOwn, OnASharedQueue,
                            BesideOthersAndARudeCard, WithADoorbellAlone, ManyGroupsPostToOneQueue,
                            LeaveWhenNobodyAnswers, LearnWhyTheyFail);

}  // namespace offload::kernels::rdma::test
