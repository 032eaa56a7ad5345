#include "packets/privileges.hpp"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <thread>

#include "tests/support/thrown.hpp"

namespace offload::packets {
namespace {

using core::ErrorCode;
using support::thrown_by;

TEST(PortErrors, SayWhatWasTriedAndWhatIsMissing) {
  struct Case {
    int errnum;
    ErrorCode code;
    const char* says;
  };
  for (const Case& one : {Case{EPERM, ErrorCode::not_permitted, "Operation not permitted"},
                          Case{EACCES, ErrorCode::not_permitted, "Permission denied"},
                          Case{ENOBUFS, ErrorCode::no_memory, "No buffer space available"},
                          Case{EAFNOSUPPORT, ErrorCode::not_supported, "this kernel has no AF_XDP"},
                          Case{EBUSY, ErrorCode::in_use, "another program has it"},
                          Case{EOPNOTSUPP, ErrorCode::not_supported, "Operation not supported"},
                          Case{ENOENT, ErrorCode::not_found, "No such file or directory"}}) {
    const auto error = thrown_by([&] { throw_port_error("trying it", one.errnum); });
    EXPECT_EQ(error.code(), one.code) << one.errnum;
    EXPECT_EQ(error.system_errno(), one.errnum);
    const std::string text = error.what();
    EXPECT_EQ(text.find("trying it: "), 0U) << text;
    EXPECT_NE(text.find(one.says), std::string::npos) << text;
  }
}

/// Calls a function on a thread that has only these capabilities; capset(2) is about one thread.
/// Returns false if this process does not have them all.
template <class Function>
bool with_capabilities(std::uint64_t capabilities, const Function& function) {
  bool has_them = false;
  std::thread([&] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
    for (std::size_t i = 0; i < data.size(); ++i) {
      data.at(i).effective = static_cast<std::uint32_t>(capabilities >> 32 * i);
      data.at(i).permitted = data.at(i).effective;
    }
    has_them = ::syscall(SYS_capset, &header, data.data()) == 0;
    if (has_them) function();
  }).join();
  return has_them;
}

constexpr std::uint64_t bit(unsigned capability) {
  return std::uint64_t{1} << capability;
}

TEST(PortErrors, NameTheCapabilitiesThatAreMissing) {
  EXPECT_TRUE(with_capabilities(0, [] {
    EXPECT_EQ(missing_privileges(),
              "; missing: CAP_NET_RAW, CAP_BPF, CAP_NET_ADMIN (run it as root, or give the program "
              "setcap cap_net_raw,cap_bpf,cap_net_admin,cap_ipc_lock+ep)");
    const auto refused = thrown_by([] { throw_port_error("trying it", EPERM); });
    EXPECT_EQ(refused.what(), "trying it: Operation not permitted" + missing_privileges());
    const auto full = thrown_by([] { throw_port_error("trying it", ENOBUFS); });
    EXPECT_NE(std::string(full.what()).find("CAP_IPC_LOCK is missing"), std::string::npos);
  }));
}

TEST(PortErrors, NameNoCapabilityThatIsThere) {
  const std::uint64_t raw = bit(CAP_NET_RAW);
  bool has_all = with_capabilities(raw | bit(CAP_NET_ADMIN) | bit(CAP_BPF),
                                   [] { EXPECT_EQ(missing_privileges(), ""); });
  has_all = has_all && with_capabilities(raw, [] {
              EXPECT_EQ(missing_privileges().find("; missing: CAP_BPF, CAP_NET_ADMIN (run"), 0U);
            });
  has_all =
      has_all && with_capabilities(bit(CAP_SYS_ADMIN), [] {
        EXPECT_EQ(missing_privileges().find("; missing: CAP_NET_RAW, CAP_NET_ADMIN (run"), 0U);
      });
  has_all = has_all && with_capabilities(bit(CAP_IPC_LOCK), [] {
              const auto full = thrown_by([] { throw_port_error("trying it", ENOBUFS); });
              EXPECT_STREQ(full.what(), "trying it: No buffer space available");
            });
  if (!has_all) GTEST_SKIP() << "unprivileged" << missing_privileges();
}

TEST(PortErrors, AreOfResultsBelowZero) {
  EXPECT_EQ(check_port(0, "trying it"), 0);
  EXPECT_EQ(check_port(7, "trying it"), 7);
  const auto error = thrown_by([] {
    errno = EBUSY;
    check_port(-1, "trying it");
  });
  EXPECT_EQ(error.code(), ErrorCode::in_use);
}

}  // namespace
}  // namespace offload::packets
