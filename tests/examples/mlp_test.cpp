#include <cmath>
#include <cstdio>
#include <random>

#include "tests/examples/example_body.hpp"
#include "tests/support/temp_dir.hpp"
//
#include "examples/services/mlp/mlp.cu"

namespace offload::kernels::test {
namespace {

constexpr std::uint32_t kLayers[][2] = {{256, 512}, {512, 512}, {512, 10}};

std::vector<float> random_parameters() {
  std::mt19937 random(1);
  std::vector<float> parameters;
  for (const auto& [inputs, outputs] : kLayers) {
    const float bound = 1 / std::sqrt(static_cast<float>(inputs));
    std::uniform_real_distribution<float> within(-bound, bound);
    for (std::uint32_t i = 0; i < (inputs + 1) * outputs; ++i) parameters.push_back(within(random));
  }
  return parameters;
}

std::string write_npy(const std::string& path, const std::vector<float>& parameters) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(parameters.size()) + ",), }";
  header.resize(117, ' ');
  header += '\n';
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  std::fputs("\x93NUMPY\x01", file);
  const unsigned char rest[] = {0, static_cast<unsigned char>(header.size()), 0};
  std::fwrite(rest, 1, sizeof rest, file);
  std::fputs(header.c_str(), file);
  std::fwrite(parameters.data(), sizeof(float), parameters.size(), file);
  EXPECT_EQ(std::fclose(file), 0);
  return path;
}

std::vector<double> infer(const std::vector<float>& parameters, std::vector<double> numbers) {
  std::size_t at = 0;
  for (const auto& [inputs, outputs] : kLayers) {
    std::vector<double> next(outputs);
    for (std::uint32_t j = 0; j < outputs; ++j) {
      for (std::uint32_t k = 0; k < inputs; ++k) {
        next[j] += static_cast<double>(parameters[at++]) * numbers[k];
      }
    }
    for (std::uint32_t j = 0; j < outputs; ++j) {
      next[j] += static_cast<double>(parameters[at++]);
      if (outputs != 10 && next[j] < 0) next[j] = 0;
    }
    numbers = next;
  }
  return numbers;
}

void expect_right_outputs(const char* storage, double error) {
  const offload::support::TempDir folder;
  const auto parameters = random_parameters();
  const MadeExample<Mlp> mlp(
      {{"weights", write_npy(folder.file("mlp.npy"), parameters)}, {"storage", storage}});
  TestChannel<HostRunner> channel(2, 1024);
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (std::uint64_t sequence = 0; sequence < 5; ++sequence) {
    std::vector<float> inputs(256);
    for (float& input : inputs) input = normal(random);
    Octets message(1024);
    std::memcpy(message.data(), inputs.data(), message.size());
    channel.post(sequence, message);
    HostRunner::run(ServeExample<Mlp, HostRunner>{&*mlp, channel.channel(), sequence});
    const auto response = channel.response(sequence);
    ASSERT_TRUE(response.has_value() && response->size() == 40);
    float outputs[10];
    std::memcpy(outputs, response->data(), sizeof outputs);
    const auto expected = infer(parameters, {inputs.begin(), inputs.end()});
    double largest = 0;
    for (std::size_t j = 0; j < 10; ++j) {
      EXPECT_NEAR(static_cast<double>(outputs[j]), expected[j], error);
      largest = std::max(largest, std::abs(expected[j]));
    }
    EXPECT_GT(largest, 10 * error);
  }
}

}  // namespace

TEST(MlpExample, AnswersAsDoublePrecision) {
  expect_right_outputs("fp32", 1e-6);
}

TEST(MlpExample, WithWeightsOfBf16) {
  expect_right_outputs("bf16", 3e-3);
}

TEST(MlpExample, AnswersNothingToOtherLengths) {
  const offload::support::TempDir folder;
  const MadeExample<Mlp> mlp({{"weights", write_npy(folder.file("mlp.npy"), random_parameters())}});
  auto messages = example_messages();
  messages.emplace_back(1020);
  expect_example_right<HostRunner>(*mlp, messages, kExampleLongest,
                                   [](const Octets&) { return Octets{}; });
}

}  // namespace offload::kernels::test
