#include <sstream>
#include <string>
#include <vector>

#include "comch/transport/rdma/slot_rings.hpp"
#include "core/error.hpp"
#include "rdma/mlx5/devx_queue_pair.hpp"
#include "tests/softcard/fixture.hpp"
#include "tests/support/log_capture.hpp"

/// The card, or an emulator, executes the entries of a worker where the card refuses something.
/// Making the rings logs one line about it; who rings a GPU's doorbells is the back end's line. A
/// suite needs a card with the option of its name.
namespace offload::softcard::test {
namespace {

/// Makes the rings of channels as a worker does.
class Rings {
 public:
  std::unique_ptr<comch::SlotRings> make(std::uint32_t blocks) {
    return comch::make_slot_rings({adapter_, adapter_.domain, engine_, blocks, 64},
                                  [](const std::string& why) { ADD_FAILURE() << why; });
  }
  /// Returns the lines that say what is not used.
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> found;
    std::istringstream text(log_.text());
    for (std::string line; std::getline(text, line);) {
      if (line.find("mlx5_0") != std::string::npos) found.push_back(line);
    }
    return found;
  }

 private:
  support::LogCapture log_;
  comch::Adapter adapter_{"mlx5_0"};
  progress::Engine engine_;
};

using Lines = std::vector<std::string>;
constexpr std::uint32_t kBlocks = 128;
constexpr const char* kItself = "mlx5_0 itself carries that out";
constexpr const char* kRefused =
    "info: mlx5_0 refuses a register with write combining (Operation not supported): doorbells "
    "use one without";

TEST(Fallback, NothingIsLoggedWhereNothingIsRefused) {
  Rings rings;
  EXPECT_EQ(rings.make(kBlocks)->carrier(), kItself);
  EXPECT_EQ(rings.lines(), Lines{});
}

// The channels of an attachment share the register of the context.
TEST(NoWriteCombining, AChannelUsesTheOtherRegister) {
  Rings rings;
  const auto one = rings.make(kBlocks);
  const auto other = rings.make(kBlocks);
  EXPECT_EQ(one->carrier(), kItself);
  EXPECT_NE(one->card_register(), nullptr);
  EXPECT_EQ(one->card_register(), other->card_register());
  EXPECT_EQ(rings.lines(), Lines{kRefused});
}

// The emulator's own requests fit in its queue pair: longer rings only wait for longer.
TEST(ShortQueues, AnEmulatorReadsLongerRings) {
  Rings rings;
  EXPECT_EQ(rings.make(4096)->carrier(), kItself);
  EXPECT_EQ(rings.lines(), Lines{});
  for (int channel = 0; channel < 2; ++channel) {
    EXPECT_EQ(rings.make(8192)->carrier(), "a thread carries that out on mlx5_0");
  }
  ASSERT_EQ(rings.lines().size(), 1U);
  EXPECT_EQ(
      rings.lines()[0].find(
          "warning: mlx5_0 does not read rings itself, an emulator does: make a queue pair: "),
      0U)
      << rings.lines()[0];
}

// A queue pair that the card's own commands make is refused too, and the card says how long it can
// be.
TEST(ShortQueues, TheCardsOwnCommandsHaveTheLimit) {
  namespace mlx5 = rdma::mlx5;
  const rdma::DeviceContext device("mlx5_0");
  const rdma::ProtectionDomain domain(device);
  mlx5::ShortDevxCommand query;
  query.set(mlx5::kOpcode, static_cast<std::uint16_t>(mlx5::DevxOpcode::query_abilities));
  mlx5::DevxMessage<4112> answer;
  ASSERT_EQ(mlx5dv_devx_general_cmd(device.get(), query.data(), query.size(), answer.data(),
                                    answer.size()),
            0);
  EXPECT_EQ(answer.get(mlx5::kAbilities + mlx5::DevxField{0x88, 8}), 12U);
  const auto make = [&](std::uint32_t blocks) {
    const rdma::QueueSizes sizes{blocks, 16};
    const auto content = mlx5::DevxQueuePair::first_content(sizes);
    const std::unique_ptr<void, void (*)(void*)> memory(std::aligned_alloc(4096, content.size()),
                                                        std::free);
    std::memcpy(memory.get(), content.data(), content.size());
    const mlx5::DevxQueuePair pair(device, domain, sizes, {memory.get(), content.size()});
  };
  EXPECT_NO_THROW(make(4096));
  EXPECT_THROW(make(8192), core::Error);
}

// No queue pair works without a register: the attachment fails.
TEST(NoRegisters, NothingCarriesOutEntries) {
  Rings rings;
  EXPECT_THROW(rings.make(kBlocks), core::Error);
  ASSERT_FALSE(rings.lines().empty());
  EXPECT_EQ(rings.lines().back().find("warning: mlx5_0 does not read rings itself"), 0U);
}

}  // namespace
}  // namespace offload::softcard::test
