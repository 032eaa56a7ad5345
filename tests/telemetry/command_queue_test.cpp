#include "telemetry/command_queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "core/log.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"

namespace offload::telemetry {
namespace {

using Status = CommandResult::Status;

TEST(CommandQueue, HandsEachCommandOverAndItsResultBack) {
  std::atomic<int> notified{0};
  CommandQueue queue([&] { ++notified; });
  constexpr int kAskers = 4;
  std::atomic<int> answered{0};
  std::vector<std::thread> askers;
  for (int i = 0; i < kAskers; ++i) {
    askers.emplace_back([&queue, &answered, i] {
      const auto result = queue.ask({"name", std::to_string(i)});
      EXPECT_EQ(result.status, Status::done);
      EXPECT_EQ(result.text, "name of " + std::to_string(i));
      ++answered;
    });
  }
  while (answered != kAskers) {
    queue.carry_out([](const AdminCommand& command) {
      return CommandResult{Status::done, command.name + " of " + command.argument};
    });
    std::this_thread::yield();
  }
  for (auto& asker : askers) asker.join();
  EXPECT_EQ(notified, kAskers);
}

TEST(CommandQueue, AControlThreadThatDoesNotAnswerRefuses) {
  CommandQueue queue([] {}, std::chrono::milliseconds(20));
  const auto result = queue.ask({"name", ""});
  EXPECT_EQ(result.status, Status::refused);
  EXPECT_EQ(result.text, "the control thread does not answer");
  queue.carry_out([](const AdminCommand&) -> CommandResult {
    ADD_FAILURE() << "the caller has been told that it is not done";
    return {};
  });
}

TEST(CommandQueue, AtTheEndOfTheProgramNobodyWaits) {
  CommandQueue queue([] {}, std::chrono::hours(1));
  std::thread asker([&] {
    EXPECT_EQ(queue.ask({"name", ""}).text, "the program is shutting down");
  });
  queue.close();  // before the command or after it
  asker.join();
  EXPECT_EQ(queue.ask({"name", ""}).status, Status::refused);
}

TEST(CommandQueue, WhoWaitsAtTheEndOfTheProgramIsToldSo) {
  std::atomic<bool> waits{false};
  CommandQueue queue([&] { waits = true; }, 2 * support::kBound);
  std::thread asker([&] {
    const auto result = queue.ask({"name", ""});
    EXPECT_EQ(result.status, Status::refused);
    EXPECT_EQ(result.text, "the program is shutting down");
  });
  EXPECT_TRUE(support::eventually([&] { return waits.load(); }));
  queue.close();
  asker.join();
  queue.carry_out([](const AdminCommand&) -> CommandResult {
    ADD_FAILURE() << "the caller has been told that it is not done";
    return {};
  });
}

TEST(CommandQueue, TheLogLevelIsEveryProgramsCommand) {
  const support::LogCapture log;
  EXPECT_EQ(set_log_level("loud").status, Status::refused);
  EXPECT_EQ(set_log_level("error").status, Status::done);
  core::log_info("not logged");
  EXPECT_EQ(set_log_level("info,comch=debug").status, Status::done);
  core::log_info("logged");
  EXPECT_EQ(log.text(), "info: logged\n");
}

}  // namespace
}  // namespace offload::telemetry
