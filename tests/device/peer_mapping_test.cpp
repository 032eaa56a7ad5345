#include "device/peer_mapping.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/temp_dir.hpp"

namespace offload::device {
namespace {

TEST(PeerMapping, IsWhatTheDriversParametersSay) {
  const support::TempDir root;
  EXPECT_EQ(peer_mapping_override(root.path()), std::nullopt);
  EXPECT_EQ(peer_mapping_advice(root.path()), "");
  std::filesystem::create_directories(root.file("proc/driver/nvidia"));
  const auto with = [&root](const std::string& lines) {
    root.write("proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\n" + lines);
    return peer_mapping_override(root.path());
  };
  EXPECT_EQ(with("RegistryDwords: \"\"\nRegistryDwordsPerDevice: \"\"\n"), false);
  EXPECT_NE(peer_mapping_advice(root.path()).find("PeerMappingOverride=1 is not set"),
            std::string::npos);
  EXPECT_EQ(with("RegistryDwords: \"PeerMappingOverride=0;\"\n"), false);
  EXPECT_EQ(with("RegistryDwords: \"PeerMappingOverride=10;\"\n"), false);
  EXPECT_EQ(with("RegistryDwords: \"RMIntrLockingMode=1;PeerMappingOverride=1;\"\n"), true);
  EXPECT_EQ(with("RegistryDwordsPerDevice: \"pci=0000:01:00.0;PeerMappingOverride=1\"\n"), true);
  EXPECT_EQ(peer_mapping_advice(root.path()), "");
}

}  // namespace
}  // namespace offload::device
