#include "apps/worker/data_path.hpp"

#include <gtest/gtest.h>

#include "tests/support/thrown.hpp"

namespace offload::worker {
namespace {

constexpr const char* kRdma = "rdma:10.0.0.1:12346";

/// A back end that serves nothing.
class SomeBackend final : public backend::Backend {
 public:
  SomeBackend(bool posts, channel::Wakeup wakeup) : posts_(posts), wakeup_(wakeup) {}
  [[nodiscard]] std::string name() const override { return "some"; }
  [[nodiscard]] channel::Wakeup wakeup() const override { return wakeup_; }
  [[nodiscard]] bool posts_responses() const override { return posts_; }
  void start(std::vector<ServedChannel>) override {}
  bool stop(core::Duration) override { return true; }
  [[nodiscard]] std::vector<std::uint64_t> heartbeats() const override { return {}; }
  std::vector<backend::Fault> check() override { return {}; }

 private:
  bool posts_;
  channel::Wakeup wakeup_;
};

const SomeBackend kCuda(true, channel::Wakeup::polling);
const SomeBackend kCpu(true, channel::Wakeup::doorbell);
const SomeBackend kGraph(false, channel::Wakeup::doorbell);

TEST(DataPath, AutoIsGpuWhereAGpuCanPost) {
  const DataPath path = choose_data_path("auto", kRdma, kCuda);
  EXPECT_TRUE(path.by_backend);
  EXPECT_EQ(path.why, "auto: the GPU can post responses");
}

TEST(DataPath, AutoIsCpuElseAndSaysWhy) {
  EXPECT_EQ(choose_data_path("auto", kRdma, kCpu).why,
            "auto: this back end has no GPU to post responses");
  EXPECT_EQ(choose_data_path("auto", kRdma, kGraph).why,
            "auto: this back end cannot post responses");
  EXPECT_EQ(choose_data_path("auto", "tcp:10.0.0.1:12346", kCuda).why,
            "auto: --comch does not begin with rdma:");
  for (const auto* backend : {&kCpu, &kGraph}) {
    EXPECT_FALSE(choose_data_path("auto", kRdma, *backend).by_backend);
  }
  EXPECT_FALSE(choose_data_path("auto", "unix:/run/x", kCuda).by_backend);
}

TEST(DataPath, WhatIsAskedForIsTakenOrRefused) {
  for (const auto* backend : {&kCuda, &kCpu}) {
    EXPECT_TRUE(choose_data_path("gpu", kRdma, *backend).by_backend);
    EXPECT_FALSE(choose_data_path("cpu", kRdma, *backend).by_backend);
  }
  EXPECT_EQ(choose_data_path("cpu", kRdma, kCuda).why, "--data-path cpu");
  const auto error = support::thrown_by([] { choose_data_path("gpu", kRdma, kGraph); });
  EXPECT_EQ(error.code(), core::ErrorCode::not_supported);
  EXPECT_STREQ(error.what(), "--data-path gpu: the back end some does not post responses");
}

TEST(DataPath, AutoFallsBackOnceWhereItIsRefused) {
  DataPath path = choose_data_path("auto", kRdma, kCuda);
  EXPECT_TRUE(fall_back(path, "auto", "mlx5_0 has no atomic operations"));
  EXPECT_FALSE(path.by_backend);
  EXPECT_EQ(path.why, "auto: refused with gpu: mlx5_0 has no atomic operations");
  EXPECT_FALSE(fall_back(path, "auto", "another reason"));
  EXPECT_EQ(path.why, "auto: refused with gpu: mlx5_0 has no atomic operations");
}

TEST(DataPath, WhatWasAskedForDoesNotFallBack) {
  DataPath path = choose_data_path("gpu", kRdma, kCuda);
  EXPECT_FALSE(fall_back(path, "gpu", "mlx5_0 has no atomic operations"));
  EXPECT_TRUE(path.by_backend);
}

}  // namespace
}  // namespace offload::worker
