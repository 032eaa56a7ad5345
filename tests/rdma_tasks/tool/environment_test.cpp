#include "apps/rdma_tasks/environment.hpp"

#include <csignal>
#include <string>

#include "tests/rdma/fake_fixture.hpp"
#include "tests/support/thrown.hpp"

/// The environment of offload-rdma on a device that is not there.
namespace offload::rdma_tool {
namespace {

using core::ErrorCode;
using support::thrown_by;

class EnvironmentTest : public rdma::FakeDeviceTest {
 protected:
  static Options options() {
    Options options;
    options.timeout = std::chrono::milliseconds(20);
    return options;
  }
  core::Signals signals_;
  Environment environment_{options(), signals_, 16};
};

TEST_F(EnvironmentTest, AWaitEndsWithItsCondition) {
  int calls = 0;
  for (const bool event_driven : {false, true}) {
    environment_.set_event_driven(event_driven);
    calls = 0;
    environment_.wait([&] { return ++calls == 3; }, "the third call",
                      std::chrono::microseconds(50));
    EXPECT_EQ(calls, 3);
  }
}

TEST_F(EnvironmentTest, AWaitThatTakesTooLongNamesWhatDidNotCome) {
  const auto error =
      thrown_by([&] { environment_.wait([] { return false; }, "the peer's hello"); });
  EXPECT_EQ(error.code(), ErrorCode::timed_out);
  EXPECT_EQ(std::string(error.what()), "timed out after 0.02 s waiting for the peer's hello");
}

TEST_F(EnvironmentTest, TheFirstFailureEndsTheRun) {
  environment_.fail({ErrorCode::io_failed, "first"});
  environment_.fail({ErrorCode::driver, "second"});
  const auto error = thrown_by([&] { environment_.wait([] { return false; }, "anything"); });
  EXPECT_EQ(error.code(), ErrorCode::io_failed);
  EXPECT_NO_THROW(environment_.wait([] { return true; }, "what is there already"));
}

TEST_F(EnvironmentTest, ASignalInterruptsTheRun) {
  std::raise(SIGTERM);
  EXPECT_THROW(environment_.wait([] { return false; }, "anything"), core::Interrupted);
}

TEST_F(EnvironmentTest, APeerThatDisconnectsAtTheEndIsNone) {
  environment_.close();
  environment_.on_peer_disconnected();
  EXPECT_NO_THROW(environment_.pause(std::chrono::microseconds(1)));
}

TEST_F(EnvironmentTest, APeerThatDisconnectsBeforeTheEndIsAnError) {
  environment_.on_peer_disconnected();
  EXPECT_EQ(thrown_by([&] { environment_.pause(std::chrono::microseconds(1)); }).code(),
            ErrorCode::connection_reset);
}

TEST_F(EnvironmentTest, ADeviceThatIsNotThereIsAnError) {
  Options other = options();
  other.path.device = "mlx5_9";
  EXPECT_EQ(thrown_by([&] { const Environment none(other, signals_, 16); }).code(),
            ErrorCode::not_found);
}

}  // namespace
}  // namespace offload::rdma_tool
