#include "comch/session/peer_process.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace offload::comch {
namespace {

TEST(PeerProcess, EndsWithTheProcess) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    for (;;) ::pause();
  }
  const PeerProcess process(child);
  EXPECT_EQ(process.pid(), child);
  EXPECT_FALSE(process.has_ended());
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(process.has_ended());
}

TEST(PeerProcess, OneThatCannotBeHeldHasEnded) {
  for (const int pid : {0, -1}) EXPECT_TRUE(PeerProcess(pid).has_ended());
}

}  // namespace
}  // namespace offload::comch
