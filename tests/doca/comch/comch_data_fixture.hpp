#pragma once

#include <doca_comch_consumer.h>
#include <doca_comch_producer.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/doca/comch/comch_fixture.hpp"

namespace offload::doca {

/// Memory of a program: a started mmap and an inventory.
struct Memory {
  Memory(doca_dev* dev, std::size_t size) : bytes(size) {
    EXPECT_EQ(doca_mmap_create(&mmap), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_set_memrange(mmap, bytes.data(), size), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_set_permissions(mmap, DOCA_ACCESS_FLAG_PCI_READ_WRITE), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_add_dev(mmap, dev), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_start(mmap), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_inventory_create(32, &inventory), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_inventory_start(inventory), DOCA_SUCCESS);
  }
  Memory& operator=(Memory&&) = delete;
  ~Memory() {
    EXPECT_EQ(doca_buf_inventory_destroy(inventory), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_destroy(mmap), DOCA_SUCCESS);
  }
  doca_buf* empty(std::size_t offset, std::size_t length) {
    doca_buf* buf = nullptr;
    EXPECT_EQ(doca_buf_inventory_buf_get_by_addr(inventory, mmap, &bytes[offset], length, &buf),
              DOCA_SUCCESS);
    return buf;
  }
  doca_buf* filled(std::size_t offset, const std::string& text) {
    std::memcpy(&bytes[offset], text.data(), text.size());
    doca_buf* buf = nullptr;
    EXPECT_EQ(
        doca_buf_inventory_buf_get_by_data(inventory, mmap, &bytes[offset], text.size(), &buf),
        DOCA_SUCCESS);
    return buf;
  }

  std::vector<char> bytes;
  doca_mmap* mmap = nullptr;
  doca_buf_inventory* inventory = nullptr;
};

/// A record of the tasks of a consumer or a producer.
struct End : Party {
  void configure(doca_ctx* own) { Party::configure(own, this); }
  void ended(doca_task* task) {
    EXPECT_TRUE(in_turn) << "a callback outside doca_pe_progress()";
    results.push_back(doca_task_get_status(task));
    doca_task_free(task);
  }

  std::vector<doca_error_t> results;
  std::vector<std::string> texts;       ///< received
  std::vector<std::string> immediates;  ///< received
  std::vector<std::uint32_t> producers;
};

inline void on_received(doca_comch_consumer_task_post_recv* task, doca_data, doca_data data) {
  auto& end = *static_cast<End*>(data.ptr);
  doca_task* const base = doca_comch_consumer_task_post_recv_as_task(task);
  if (doca_task_get_status(base) == DOCA_SUCCESS) {
    const std::uint8_t* const immediate = doca_comch_consumer_task_post_recv_get_imm_data(task);
    const std::uint32_t length = doca_comch_consumer_task_post_recv_get_imm_data_len(task);
    end.immediates.emplace_back(reinterpret_cast<const char*>(immediate), length);
    end.producers.push_back(doca_comch_consumer_task_post_recv_get_producer_id(task));
  }
  if (doca_buf* const buf = doca_comch_consumer_task_post_recv_get_buf(task)) {
    void* bytes = nullptr;
    std::size_t size = 0;
    EXPECT_EQ(doca_buf_get_data(buf, &bytes), DOCA_SUCCESS);
    EXPECT_EQ(doca_buf_get_data_len(buf, &size), DOCA_SUCCESS);
    end.texts.emplace_back(static_cast<const char*>(bytes), size);
    EXPECT_EQ(doca_buf_dec_refcount(buf, nullptr), DOCA_SUCCESS);
  }
  end.ended(base);
}

inline void on_data_sent(doca_comch_producer_task_send* task, doca_data, doca_data data) {
  if (const doca_buf* const buf = doca_comch_producer_task_send_get_buf(task)) {
    EXPECT_EQ(doca_buf_dec_refcount(const_cast<doca_buf*>(buf), nullptr), DOCA_SUCCESS);
  }
  static_cast<End*>(data.ptr)->ended(doca_comch_producer_task_send_as_task(task));
}

/// A connection with a consumer of one side and a producer of the other.
class ComchDataTest : public ComchTest {
 protected:
  static constexpr std::size_t kMemory = std::size_t{4} * 1024 * 1024;
  static constexpr std::uint32_t kDataTasks = 4;

  ~ComchDataTest() override {
    for (const auto& [end, consumer] : consumers_) {
      end_of(*end);
      EXPECT_EQ(doca_comch_consumer_destroy(consumer), DOCA_SUCCESS);
    }
    for (const auto& [end, producer] : producers_) {
      end_of(*end);
      EXPECT_EQ(doca_comch_producer_destroy(producer), DOCA_SUCCESS);
    }
    others_ = nullptr;
  }
  void end_of(End& end) {
    EXPECT_NE(doca_ctx_stop(end.ctx), DOCA_ERROR_INVALID_VALUE);
    EXPECT_TRUE(run_until([&] { return end.state() == DOCA_CTX_STATE_IDLE; }));
  }
  doca_comch_consumer* make_consumer(End& end, doca_comch_connection* connection) {
    doca_comch_consumer* consumer = nullptr;
    EXPECT_EQ(doca_comch_consumer_create(connection, to_.mmap, &consumer), DOCA_SUCCESS);
    end.configure(doca_comch_consumer_as_ctx(consumer));
    EXPECT_EQ(
        doca_comch_consumer_task_post_recv_set_conf(consumer, on_received, on_received, kDataTasks),
        DOCA_SUCCESS);
    consumers_.emplace_back(&end, consumer);
    others_ = [this] { turn_ends(); };
    return consumer;
  }
  doca_comch_producer* make_producer(End& end, doca_comch_connection* connection) {
    doca_comch_producer* producer = nullptr;
    EXPECT_EQ(doca_comch_producer_create(connection, &producer), DOCA_SUCCESS);
    end.configure(doca_comch_producer_as_ctx(producer));
    EXPECT_EQ(
        doca_comch_producer_task_send_set_conf(producer, on_data_sent, on_data_sent, kDataTasks),
        DOCA_SUCCESS);
    producers_.emplace_back(&end, producer);
    others_ = [this] { turn_ends(); };
    return producer;
  }
  void turn_ends() {
    for (const auto& [end, consumer] : consumers_) end->turn();
    for (const auto& [end, producer] : producers_) end->turn();
  }
  /// Connects, and starts a consumer of the server and a producer of the client, or the reverse.
  void start(bool of_server = true) {
    connect();
    Side& reader = of_server ? server_side_ : client_side_;
    Side& writer = of_server ? client_side_ : server_side_;
    consumer_ = make_consumer(receiver_, reader.connection);
    producer_ = make_producer(sender_, writer.connection);
    ASSERT_EQ(doca_ctx_start(receiver_.ctx), DOCA_ERROR_IN_PROGRESS);
    ASSERT_TRUE(run_until([&] {
      return receiver_.state() == DOCA_CTX_STATE_RUNNING && writer.new_consumers.size() == 1;
    }));
    ASSERT_EQ(doca_ctx_start(sender_.ctx), DOCA_SUCCESS);
    ASSERT_EQ(doca_comch_consumer_get_id(consumer_, &id_), DOCA_SUCCESS);
    EXPECT_EQ(writer.new_consumers[0], id_);
  }
  doca_error_t post(doca_buf* buf) {
    doca_comch_consumer_task_post_recv* task = nullptr;
    const doca_error_t result =
        doca_comch_consumer_task_post_recv_alloc_init(consumer_, buf, &task);
    if (result != DOCA_SUCCESS) return result;
    return submit_task(doca_comch_consumer_task_post_recv_as_task(task), buf);
  }
  doca_error_t send(const doca_buf* buf, const std::string& immediate = "") {
    doca_comch_producer_task_send* task = nullptr;
    auto* const bytes = reinterpret_cast<std::uint8_t*>(const_cast<char*>(immediate.data()));
    const doca_error_t result = doca_comch_producer_task_send_alloc_init(
        producer_, buf, immediate.empty() ? nullptr : bytes,
        static_cast<std::uint32_t>(immediate.size()), id_, &task);
    if (result != DOCA_SUCCESS) return result;
    return submit_task(doca_comch_producer_task_send_as_task(task), const_cast<doca_buf*>(buf));
  }
  /// Frees task and buffer if it is refused.
  static doca_error_t submit_task(doca_task* task, doca_buf* buf) {
    const doca_error_t result = doca_task_submit(task);
    if (result != DOCA_SUCCESS) {
      doca_task_free(task);
      if (buf != nullptr) {
        EXPECT_EQ(doca_buf_dec_refcount(buf, nullptr), DOCA_SUCCESS);
      }
    }
    return result;
  }
  /// Sends `text` once the consumer's posted buffer is known.
  void send_text(const std::string& text, const std::string& immediate = "") {
    doca_error_t result = DOCA_ERROR_AGAIN;
    ASSERT_TRUE(run_until([&] {
      if (result == DOCA_ERROR_AGAIN) result = send(from_.filled(0, text), immediate);
      return result != DOCA_ERROR_AGAIN;
    }));
    ASSERT_EQ(result, DOCA_SUCCESS);
  }

  Memory to_{host_, kMemory};
  Memory from_{host_, kMemory};
  End receiver_;
  End sender_;
  doca_comch_consumer* consumer_ = nullptr;
  doca_comch_producer* producer_ = nullptr;
  std::uint32_t id_ = 0;
  std::vector<std::pair<End*, doca_comch_consumer*>> consumers_;
  std::vector<std::pair<End*, doca_comch_producer*>> producers_;
};

}  // namespace offload::doca
