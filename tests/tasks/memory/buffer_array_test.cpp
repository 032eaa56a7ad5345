#include "tasks/memory/buffer_array.hpp"

#include <gtest/gtest.h>

#include <type_traits>
#include <vector>

#include "tests/support/memory.hpp"

namespace offload::memory {
namespace {

using core::ErrorCode;
using support::thrown_by;

static_assert(std::is_trivially_copyable_v<kernels::BufferArrayView>);

class BufferArrayTest : public testing::Test {
 protected:
  BufferArrayTest() { region_.start(); }

  std::vector<std::byte> memory_{1000};
  MemoryRegion region_{{"x"}, {borrow_range(std::span(memory_).first(900))}};
};

TEST_F(BufferArrayTest, ItsElementsLieInTheRegion) {
  BufferArray array(region_, memory_.data() + 50, {100, 150, 6});
  array.start();
  const auto view = array.view();
  for (std::uint64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(reinterpret_cast<std::byte*>(view.at(i).address), memory_.data() + 50 + 150 * i);
    EXPECT_EQ(view.at(i).length, 100U);
  }
  EXPECT_EQ(view.at(6).address, nullptr);
}

TEST_F(BufferArrayTest, ItsElementsHaveTheKeysOfACard) {
  FakeRegistrar card("card", 100);
  const FakeRegistrar other("other");
  region_.stop();
  region_.add_registrar(card);
  region_.start();
  BufferArray array(region_, memory_.data(), {100, 150, 6});
  EXPECT_EQ(code_of([&] { static_cast<void>(array.view(card)); }), ErrorCode::bad_state);
  array.start();
  const auto view = array.view(card);
  EXPECT_EQ(view.at(5).lkey, region_.key(card, 0)->local);
  EXPECT_EQ(view.at(5).rkey, region_.key(card, 0)->remote);
  EXPECT_EQ(view.at(6).lkey, 0U);
  EXPECT_EQ(array.view().at(5).lkey, 0U);
  EXPECT_EQ(code_of([&] { static_cast<void>(array.view(other)); }), ErrorCode::not_found);
  array.stop();
  region_.stop();
  region_.remove_registrar(card);
  region_.start();
}

TEST_F(BufferArrayTest, WhatDoesNotLieInTheRegionIsRefused) {
  BufferArray to_the_last_byte(region_, memory_.data() + 50, {100, 150, 6});
  EXPECT_NO_THROW(to_the_last_byte.start());
  for (const auto& [base, shape] :
       std::vector<std::pair<std::byte*, ArrayShape>>{{memory_.data() + 51, {100, 150, 6}},
                                                      {memory_.data(), {900, 900, 2}},
                                                      {memory_.data() - 1, {1, 1, 1}},
                                                      {memory_.data() + 900, {1, 1, 1}},
                                                      {nullptr, {1, 1, 1}}}) {
    BufferArray array(region_, base, shape);
    EXPECT_EQ(code_of([&] { array.start(); }), ErrorCode::invalid_value);
    EXPECT_FALSE(array.started());
  }
}

TEST_F(BufferArrayTest, ItsShapeIsChecked) {
  for (const ArrayShape shape :
       {ArrayShape{0, 1, 1}, ArrayShape{1, 1, 0}, ArrayShape{2, 1, 1}, ArrayShape{1, kMost, 3},
        ArrayShape{kMost, kMost, 2}, ArrayShape{1, 2, kMost}, ArrayShape{2, 2, kMost / 2 + 1}}) {
    EXPECT_EQ(code_of([&] { BufferArray(region_, memory_.data(), shape); }),
              ErrorCode::invalid_value)
        << shape.element_size << ' ' << shape.stride << ' ' << shape.count;
  }
  EXPECT_NO_THROW(BufferArray(region_, memory_.data(), {1, 1, kMost}));
  EXPECT_NO_THROW(BufferArray(region_, memory_.data(), {kMost, kMost, 1}));
}

TEST_F(BufferArrayTest, CallsInTheWrongStateAreRefused) {
  BufferArray array(region_, memory_.data(), {10, 10, 1});
  const auto expect = [](const core::Error& error, const char* text) {
    EXPECT_EQ(error.code(), ErrorCode::bad_state);
    EXPECT_STREQ(error.what(), text);
  };
  expect(thrown_by([&] { array.stop(); }),
         "buffer array of memory region 'x' is stopped: cannot stop");
  expect(thrown_by([&] { static_cast<void>(array.view()); }),
         "buffer array of memory region 'x' is stopped: cannot be looked at");
  array.start();
  expect(thrown_by([&] { array.start(); }),
         "buffer array of memory region 'x' is started: cannot start");
  array.stop();
  region_.stop();
  expect(thrown_by([&] { array.start(); }),
         "memory region 'x' is stopped: cannot have a buffer array");
}

TEST_F(BufferArrayTest, TheRegionDoesNotStopBeforeIt) {
  {
    BufferArray array(region_, memory_.data(), {10, 10, 1});
    array.start();
    EXPECT_EQ(code_of([&] { region_.stop(); }), ErrorCode::in_use);
    array.stop();
    region_.stop();
    region_.start();
    array.start();
  }
  region_.stop();  // the array stopped at its end
}

}  // namespace
}  // namespace offload::memory
