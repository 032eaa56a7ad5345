#include "apps/rdma_tasks/options.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "tests/support/command_line.hpp"

namespace offload::rdma_tool {
namespace {

using namespace std::chrono_literals;
using support::BadCase;
using Sizes = std::vector<std::uint32_t>;

std::variant<Options, cli::Leave> parse(std::vector<const char*> arguments) {
  return support::parse<parse_options>(std::move(arguments), "offload-rdma");
}

/// Parses these options after the mandatory ones.
Options accepted(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), {"send", "--role", "requester", "--cm", "10.0.0.1"});
  return support::accepted(parse(arguments));
}

TEST(RdmaToolOptions, Defaults) {
  const auto options = accepted({});
  EXPECT_EQ(options.operation, Operation::send);
  EXPECT_EQ(options.role, Role::requester);
  EXPECT_EQ(options.path.device, "rdma");
  EXPECT_EQ(options.cm_address, "10.0.0.1");
  EXPECT_EQ(options.cm_port, 18515);
  EXPECT_EQ(options.qp_type, rdma::QpType::rc);
  EXPECT_FALSE(options.event_driven);
  EXPECT_FALSE(options.shared_receives);
  EXPECT_EQ(options.initiator, Initiator::cpu);
  EXPECT_EQ(options.queue_lanes, 1U);
  EXPECT_EQ(options.sizes, Sizes{8});
  EXPECT_EQ(options.iterations, 1000U);
  EXPECT_EQ(options.in_flight, 1U);
  EXPECT_EQ(options.batch, 1U);
  EXPECT_EQ(options.connections, 1U);
  EXPECT_TRUE(options.verify);
  EXPECT_EQ(options.timeout, 30s);
  EXPECT_EQ(options.output, "");
}

TEST(RdmaToolOptions, ThePathIsChosenAsOfServerAndWorker) {
  const auto options = accepted({"--rdma-device", "mlx5_1", "--gid-index", "3", "--traffic-class",
                                 "104", "--service-level", "1", "--pkey", "0x8001"});
  EXPECT_EQ(options.path, (rdma::PathChoice{"mlx5_1", 3, 104, 1, 0x8001}));
  EXPECT_EQ(accepted({"--device", "mlx5_2"}).path.device, "mlx5_2");
}

TEST(RdmaToolOptions, EverythingElse) {
  const auto options = support::accepted(parse({"write-imm", "--role",
                                                "responder", "--local-descriptor",
                                                "a",         "--remote-descriptor",
                                                "b",         "--transport",
                                                "uc",        "--size",
                                                "1,4k,1m",   "-n",
                                                "7",         "--in-flight",
                                                "16",        "--batch",
                                                "4",         "--connections",
                                                "3",         "--event-driven",
                                                "--srq",     "--no-verify",
                                                "--timeout", "500ms",
                                                "--seed",    "9",
                                                "--inline",  "0",
                                                "--device",  "mlx5_0",
                                                "--gid",     "fe80::1",
                                                "--output",  "file"}));
  EXPECT_EQ(options.operation, Operation::write_imm);
  EXPECT_EQ(options.role, Role::responder);
  EXPECT_EQ(options.local_descriptor, "a");
  EXPECT_EQ(options.remote_descriptor, "b");
  EXPECT_EQ(options.qp_type, rdma::QpType::uc);
  EXPECT_EQ(options.sizes, (Sizes{1, 4096, 1 << 20}));
  EXPECT_EQ(options.iterations, 7U);
  EXPECT_EQ(options.in_flight, 16U);
  EXPECT_EQ(options.batch, 4U);
  EXPECT_EQ(options.connections, 3U);
  EXPECT_TRUE(options.event_driven);
  EXPECT_TRUE(options.shared_receives);
  EXPECT_FALSE(options.verify);
  EXPECT_EQ(options.timeout, 500ms);
  EXPECT_EQ(options.seed, 9U);
  EXPECT_EQ(options.max_inline_data, 0U);
  EXPECT_EQ(options.path.device, "mlx5_0");
  EXPECT_EQ(options.gid, "fe80::1");
  EXPECT_EQ(options.output, "file");
}

TEST(RdmaToolOptions, WhatBothEndsMustHaveAlikeSaysSo) {
  const auto options = accepted({"--size", "1,8"});
  EXPECT_EQ(agreed(options),
            "send RC --size 1,8 --iterations 1000 --in-flight 1 --connections 1 --seed 1");
  // How an end waits and how it posts is its own affair.
  EXPECT_EQ(agreed(accepted({"--size", "1,8", "--event-driven", "--inline", "0"})),
            agreed(options));
  EXPECT_NE(agreed(accepted({"--size", "1,8", "--no-verify"})), agreed(options));
}

TEST(RdmaToolOptions, BothEndsHaveTheSameInitiatorAndLanes) {
  const auto options = accepted({"--initiator", "gpu"});
  EXPECT_EQ(options.initiator, Initiator::gpu);
  EXPECT_EQ(agreed(options), agreed(accepted({})) + " --initiator gpu");
  const auto shared =
      support::accepted(parse({"put-signal", "--role", "requester", "--cm", "10.0.0.1",
                               "--initiator", "gpu", "--shared-queue", "3", "--in-flight", "6"}));
  EXPECT_EQ(shared.operation, Operation::put_signal);
  EXPECT_EQ(shared.queue_lanes, 3U);
  EXPECT_NE(agreed(shared).find(" --initiator gpu --shared-queue 3"), std::string::npos);
}

TEST(RdmaToolOptions, EachEndChoosesItsRings) {
  EXPECT_EQ(accepted({"--initiator", "gpu"}).rings, Rings::automatic);
  EXPECT_EQ(accepted({"--initiator", "gpu", "--rings", "card"}).rings, Rings::card);
  const auto proxy = accepted({"--initiator", "gpu", "--rings", "proxy"});
  EXPECT_EQ(proxy.rings, Rings::proxy);
  EXPECT_EQ(agreed(proxy), agreed(accepted({"--initiator", "gpu"})));
}

TEST(RdmaToolOptions, DeviceFunctionsHaveTheseOperations) {
  for (const char* const operation :
       {"send", "recv", "write", "read", "write-imm", "send-imm", "atomic", "put-signal"}) {
    const auto options = support::accepted(
        parse({operation, "--role", "responder", "--cm", "10.0.0.1", "--initiator", "gpu"}));
    EXPECT_EQ(name_of(options.operation), operation);
  }
}

TEST(RdmaToolOptions, CopiesNeedNoPeer) {
  const auto options = support::accepted(parse({"copy", "--initiator", "gpu", "--in-flight", "4"}));
  EXPECT_TRUE(is_alone(options.operation));
  EXPECT_EQ(options.role, Role::requester);
  EXPECT_FALSE(is_alone(Operation::put_signal));
}

TEST(RdmaToolOptions, SomeOperationsHaveDefaultsOfTheirOwn) {
  const auto of = [](const char* operation, std::vector<const char*> more = {}) {
    std::vector<const char*> arguments = {operation, "--role", "requester", "--cm", "10.0.0.1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return support::accepted(parse(arguments));
  };
  EXPECT_EQ(of("multi-conn").connections, 8U);
  EXPECT_EQ(of("multi-conn", {"--connections", "1"}).connections, 1U);
  EXPECT_EQ(of("ordered").connections, 2U);
  EXPECT_EQ(of("burst").in_flight, 64U);
  EXPECT_EQ(of("burst").batch, 32U);
  EXPECT_EQ(of("burst", {"--in-flight", "8", "--batch", "2"}).batch, 2U);
  EXPECT_EQ(of("atomic").operation, Operation::atomic);
  EXPECT_EQ(of("sync-event").operation, Operation::sync_event);
}

TEST(RdmaToolOptions, HelpNamesEveryOperation) {
  const auto help = std::get<cli::Leave>(parse({"--help"}));
  EXPECT_EQ(help.status, 0);
  for (const char* word :
       {"send", "recv", "write", "read", "write-imm", "send-imm", "atomic", "sync-event",
        "multi-conn", "burst", "ordered", "put-signal", "copy", "bring-up", "--rings"}) {
    EXPECT_NE(help.text.find(word), std::string::npos) << word;
  }
}

class RdmaToolBadOptions : public testing::TestWithParam<BadCase> {};

TEST_P(RdmaToolBadOptions, OneLineSaysWhatIsWrong) {
  support::expect_refused(parse(GetParam().arguments), "offload-rdma", GetParam().says);
}

INSTANTIATE_TEST_SUITE_P(
    , RdmaToolBadOptions,
    testing::Values(
        BadCase{{}, "operation"}, BadCase{{"shout", "--role", "requester"}, "shout"},
        BadCase{{"send", "--cm", "a"}, "--role is required"},
        BadCase{{"send", "--role", "boss", "--cm", "a"}, "one of requester, responder"},
        BadCase{{"send", "--role", "requester"}, "is required for the peer"},
        BadCase{{"send", "--role", "requester", "--local-descriptor", "a"}, "--remote-descriptor"},
        BadCase{{"send", "--role", "requester", "--local-descriptor", "a", "--remote-descriptor",
                 "b", "--cm", "c"},
                "excludes"},
        BadCase{{"send", "--role", "requester", "--port", "9"}, "requires --cm"},
        BadCase{{"send", "--role", "requester", "--cm", "a", "--size", "1,"}, "sizes from 1"},
        BadCase{{"send", "--role", "requester", "--cm", "a", "--size", "0"}, "sizes from 1"},
        BadCase{{"send", "--role", "requester", "--cm", "a", "--size", "65m"}, "sizes from 1"},
        BadCase{{"send", "--role", "requester", "--cm", "a", "--in-flight", "0"}, "--in-flight"},
        BadCase{{"send", "--role", "requester", "--cm", "a", "--batch", "2"}, "--batch"},
        BadCase{{"send", "--role", "requester", "--cm", "a", "--gid", "here"}, "--gid"},
        BadCase{{"send", "--role", "requester", "--cm", "a", "--size", "64m", "--in-flight", "64"},
                "too much memory"},
        BadCase{{"read", "--role", "requester", "--cm", "a", "--transport", "uc"},
                "UC does not support read"},
        BadCase{{"atomic", "--role", "requester", "--cm", "a", "--transport", "uc"},
                "UC does not support atomic"},
        BadCase{{"atomic", "--role", "requester", "--cm", "a", "--size", "4"},
                "atomic allows only --size 8"},
        BadCase{{"sync-event", "--role", "requester", "--cm", "a", "--in-flight", "2"},
                "sync-event allows only --in-flight 1"},
        BadCase{{"ordered", "--role", "requester", "--cm", "a", "--connections", "3"},
                "ordered allows only --connections 2"},
        BadCase{{"burst", "--role", "requester", "--cm", "a", "--batch", "1"}, "--batch"},
        BadCase{{"put-signal", "--role", "requester", "--cm", "a"},
                "is allowed only with --initiator gpu"},
        BadCase{{"copy"}, "copy is allowed only with --initiator gpu"},
        BadCase{{"copy", "--initiator", "gpu", "--role", "requester"},
                "copy: --role is not allowed"},
        BadCase{{"copy", "--initiator", "gpu", "--cm", "a"}, "copy has no peer to connect to"},
        BadCase{{"copy", "--initiator", "gpu", "--transport", "uc"}, "UC does not support copy"},
        BadCase{{"read", "--role", "requester", "--cm", "a", "--rings", "proxy"},
                "--rings is allowed only with --initiator gpu"},
        BadCase{{"send", "--role", "requester", "--cm", "a", "--initiator", "gpu", "--transport",
                 "uc", "--rings", "card"},
                "--rings card does not support --transport uc"},
        BadCase{{"read", "--role", "requester", "--cm", "a", "--shared-queue", "2"},
                "is allowed only with --initiator gpu"},
        BadCase{{"burst", "--role", "requester", "--cm", "a", "--initiator", "gpu"},
                "burst does not support --initiator gpu"},
        BadCase{{"sync-event", "--role", "requester", "--cm", "a", "--initiator", "gpu"},
                "sync-event does not support --initiator gpu"},
        BadCase{{"multi-conn", "--role", "requester", "--cm", "a", "--initiator", "gpu"},
                "multi-conn does not support --initiator gpu"},
        BadCase{{"ordered", "--role", "requester", "--cm", "a", "--initiator", "gpu"},
                "ordered does not support --initiator gpu"},
        BadCase{{"send", "--role", "requester", "--cm", "a", "--initiator", "gpu", "--srq"},
                "--srq"},
        BadCase{{"send", "--role", "requester", "--cm", "a", "--initiator", "gpu", "--in-flight",
                 "4", "--batch", "2"},
                "--batch"},
        BadCase{{"write", "--role", "requester", "--cm", "a", "--initiator", "gpu", "--in-flight",
                 "4", "--shared-queue", "2"},
                "write does not support --shared-queue"},
        BadCase{{"read", "--role", "requester", "--cm", "a", "--initiator", "gpu", "--in-flight",
                 "4", "--shared-queue", "3"},
                "a multiple of"},
        BadCase{{"put-signal", "--role", "requester", "--cm", "a", "--initiator", "gpu",
                 "--transport", "uc"},
                "UC does not support put-signal"}));

}  // namespace
}  // namespace offload::rdma_tool
