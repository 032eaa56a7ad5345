#include "apps/client/report/request_log_file.hpp"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::client {
namespace {

using namespace std::chrono_literals;

class RequestLogFileTest : public testing::Test {
 protected:
  /// Hands over a request that was due at `due`, and sent 1 us and answered 3 us after that.
  static void add(RequestLogFile& file, core::TimePoint due, std::optional<ErrorKind> error = {}) {
    RequestLogWriter writer(file.log());
    writer.add({due, due + 1us, due + 3us, 4, 64, error});
    writer.flush();
  }

  const support::TempDir folder_;
  const std::string path_ = folder_.file("log");
  const core::TimePoint start_ = core::TimePoint{} + 1h;
};

TEST_F(RequestLogFileTest, TimesCountFromTheFirstRun) {
  RequestLogFile file(path_);
  file.begin_run(start_);
  add(file, start_ + 10us);
  file.write_pending();
  add(file, start_ + 20us, ErrorKind::mismatch);
  file.write_pending();
  file.begin_run(start_ + 1ms);
  add(file, start_ + 1ms);
  file.commit();
  EXPECT_EQ(folder_.read("log"),
            "run,connection,bytes,intended_ns,sent_ns,done_ns,outcome\n"
            "0,4,64,10000,11000,13000,ok\n"
            "0,4,64,20000,21000,23000,mismatch\n"
            "1,4,64,1000000,1001000,1003000,ok\n");
}

TEST_F(RequestLogFileTest, WithoutAPathThereIsNone) {
  RequestLogFile file("");
  EXPECT_EQ(file.log(), nullptr);
  file.begin_run(start_);
  file.commit();
}

// The file has those that were written.
TEST_F(RequestLogFileTest, RequestsThatAreMissingAreAnError) {
  RequestLogFile file(path_);
  file.begin_run(start_);
  for (std::size_t i = 0; i < RequestLog::kMostWaiting + 2; ++i) add(file, start_);
  const auto error = support::thrown_by([&] { file.commit(); });
  EXPECT_STREQ(error.what(),
               "--log-requests: 2 requests are missing: they arrived too fast to be written");
  const std::string text = folder_.read("log");
  EXPECT_EQ(std::ranges::count(text, '\n'), RequestLog::kMostWaiting + 1);
}

}  // namespace
}  // namespace offload::client
