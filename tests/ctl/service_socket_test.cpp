#include "apps/ctl/service_socket.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "apps/ctl/options.hpp"
#include "core/fd.hpp"

namespace offload::ctl {
namespace {

namespace fs = std::filesystem;

/// A folder as /run, with the sockets of instances.
class RunFolder : public testing::Test {
 protected:
  RunFolder() : path_(fs::temp_directory_path() / ("run-" + std::to_string(::getpid()))) {
    fs::create_directory(path_);
  }
  ~RunFolder() override { fs::remove_all(path_); }

  [[nodiscard]] std::string path() const { return path_.string(); }

  void add(ServiceKind kind, const std::string& instance) {
    const fs::path place = service_socket(path(), kind, instance);
    fs::create_directory(place.parent_path());
    const core::Fd listener(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, place.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
  }

  [[nodiscard]] std::variant<Options, cli::Leave> parse(std::vector<const char*> arguments) const {
    arguments.insert(arguments.begin(), "offload-ctl");
    return parse_options(static_cast<int>(arguments.size()), arguments.data(), path());
  }

 private:
  fs::path path_;
};

TEST_F(RunFolder, HasTheInstancesWithASocket) {
  EXPECT_TRUE(instances_in(path(), ServiceKind::server).empty());
  fs::create_directory(path() + "/dpu-gpu-offload-stopped");
  add(ServiceKind::server, "two");
  add(ServiceKind::server, "one");
  add(ServiceKind::worker, "other");
  EXPECT_EQ(instances_in(path(), ServiceKind::server), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(instances_in(path(), ServiceKind::worker), (std::vector<std::string>{"other"}));
  EXPECT_TRUE(instances_in(path() + "/nowhere", ServiceKind::server).empty());
}

TEST_F(RunFolder, TheOnlyInstanceIsTheDefault) {
  add(ServiceKind::server, "one");
  const std::vector<std::string> one{service_socket(path(), ServiceKind::server, "one")};
  EXPECT_EQ(std::get<Options>(parse({"ready"})).sockets, one);
  EXPECT_EQ(std::get<Options>(parse({"ready", "--all"})).sockets, one);
  EXPECT_TRUE(std::holds_alternative<cli::Leave>(parse({"ready", "--all", "-w"})));
  const auto none = std::get<cli::Leave>(parse({"ready", "-w"}));
  EXPECT_EQ(none.status, cli::kUsageError);
  EXPECT_NE(none.text.find("systemd runs no worker here"), std::string::npos) << none.text;
  add(ServiceKind::server, "two");
  const auto several = std::get<cli::Leave>(parse({"ready"}));
  EXPECT_EQ(several.status, cli::kUsageError);
  EXPECT_NE(several.text.find("several servers run here: one, two; choose with --instance, or "
                              "--all"),
            std::string::npos)
      << several.text;
  const std::vector<std::string> two{service_socket(path(), ServiceKind::server, "two")};
  EXPECT_EQ(std::get<Options>(parse({"ready", "-i", "two"})).sockets, two);
  EXPECT_EQ(std::get<Options>(parse({"ready", "--all"})).sockets,
            (std::vector<std::string>{one.front(), two.front()}));
}

}  // namespace
}  // namespace offload::ctl
