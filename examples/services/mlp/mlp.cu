#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/module/reduce.hpp"
#include "kernels/module/service_module.hpp"

using offload::kernels::Block;
using offload::kernels::reduce_sum;
using offload::kernels::Request;
using offload::kernels::ServiceSetup;
using offload::kernels::SingleLane;

namespace mlp {

constexpr std::uint32_t kInputs = 256;
constexpr std::uint32_t kHidden = 512;
constexpr std::uint32_t kOutputs = 10;

OFFLOAD_HOST_DEVICE inline float float_of(std::uint32_t bits) {
  float number = 0;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

/// Converts a stored weight, fp32 or bf16.
OFFLOAD_HOST_DEVICE inline float number_of(float weight) {
  return weight;
}
OFFLOAD_HOST_DEVICE inline float number_of(std::uint16_t weight) {
  return float_of(static_cast<std::uint32_t>(weight) << 16);
}

OFFLOAD_HOST_DEVICE inline float relu(float number) {
  return number > 0 ? number : 0;
}

/// The parameters. In a hidden layer, the weights of one input lie side by side; in the
/// last, those of one output.
template <class Stored>
struct Model {
  const Stored* first;
  const Stored* second;
  const Stored* last;
  const float* biases;  ///< of the three layers, one after the other

  [[nodiscard]] OFFLOAD_HOST_DEVICE const float* second_biases() const { return biases + kHidden; }
  [[nodiscard]] OFFLOAD_HOST_DEVICE const float* last_biases() const {
    return biases + 2 * kHidden;
  }
};

// The group runs the model, which leaves the 10 outputs in every lane.

template <class Stored>
OFFLOAD_HOST_DEVICE void run(const SingleLane&, const Request& request, const Model<Stored>& model,
                             float* outputs) {
  const auto layer = [](const float* from, std::uint32_t count, const Stored* weights,
                        const float* biases, float* to) {
    std::memcpy(to, biases, kHidden * sizeof(float));
    for (std::uint32_t k = 0; k < count; ++k, weights += kHidden) {
      for (std::uint32_t j = 0; j < kHidden; ++j) to[j] += from[k] * number_of(weights[j]);
    }
    for (std::uint32_t j = 0; j < kHidden; ++j) to[j] = relu(to[j]);
  };
  float inputs[kInputs];
  for (std::uint32_t k = 0; k < kInputs; k += 4) {
    const Block block = request.block(k * sizeof(float));
    std::memcpy(inputs + k, &block, sizeof block);
  }
  float first[kHidden];
  float second[kHidden];
  layer(inputs, kInputs, model.first, model.biases, first);
  layer(first, kHidden, model.second, model.second_biases(), second);
  for (std::uint32_t j = 0; j < kOutputs; ++j) {
    outputs[j] = model.last_biases()[j];
    for (std::uint32_t k = 0; k < kHidden; ++k) {
      outputs[j] += second[k] * number_of(model.last[j * kHidden + k]);
    }
  }
}

#if defined(__CUDACC__)

using offload::kernels::ThreadBlock;
using offload::kernels::Warp;
using offload::kernels::WarpTile;

/// The weights that a lane reads at once: 16 bytes, 4 of fp32 or 8 of bf16.
template <class Stored>
struct Weights {
  static constexpr std::uint32_t kCount = sizeof(uint4) / sizeof(Stored);

  /// `index`: counts such weights.
  __device__ void read(const Stored* from, std::uint32_t index) {
    block = __ldg(reinterpret_cast<const uint4*>(from) + index);
  }
  /// `index`: a constant, in loops that are unrolled.
  [[nodiscard]] __device__ float at(std::uint32_t index) const {
    const std::uint32_t words[] = {block.x, block.y, block.z, block.w};
    if (kCount == 4) return float_of(words[index]);
    return float_of(index % 2 == 0 ? words[index / 2] << 16 : words[index / 2] & 0xffff'0000U);
  }

  uint4 block;
};

/// One warp, for a message of a batch: a lane has 16 of a layer's 512 numbers in its registers, in
/// runs as long as its reads of weights.
template <class Stored>
struct WarpLayers {
  static constexpr std::uint32_t kRun = Weights<Stored>::kCount;
  static constexpr std::uint32_t kRuns = kHidden / 32 / kRun;

  float numbers[kHidden / 32];

  /// Returns which of the layer's numbers is the lane's number `index`.
  __device__ static std::uint32_t number(std::uint32_t index, std::uint32_t lane) {
    return (index / kRun * 32 + lane) * kRun + index % kRun;
  }

  __device__ void set_biases(std::uint32_t lane, const float* biases) {
#pragma unroll
    for (std::uint32_t i = 0; i < kHidden / 32; ++i) numbers[i] = __ldg(biases + number(i, lane));
  }

  /// Adds the contribution of input `k`, whose value is `from`.
  __device__ void add(std::uint32_t lane, const Stored* weights, std::uint32_t k, float from) {
#pragma unroll
    for (std::uint32_t run = 0; run < kRuns; ++run) {
      Weights<Stored> read;
      read.read(weights, k * (kHidden / kRun) + run * 32 + lane);
#pragma unroll
      for (std::uint32_t i = 0; i < kRun; ++i) numbers[run * kRun + i] += from * read.at(i);
    }
  }
};

/// Not used by any channel, which has no such message for a warp alone: its packets do not hold it.
template <class Stored>
__device__ void run(const Warp&, const Request&, const Model<Stored>&, float*) {}

// Not inlined: each kernel would have several copies of them, and take a minute to compile.

template <class Stored>
__device__ __noinline__ void run(const WarpTile& group, const Request& request,
                                 const Model<Stored>& model, float* outputs) {
  using Layers = WarpLayers<Stored>;
  const std::uint32_t lane = group.lane();
  Layers first;
  first.set_biases(lane, model.biases);
#pragma unroll 1
  for (std::uint32_t k = 0; k < kInputs; k += 4) {
    const Block block = request.block(k * sizeof(float));
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      first.add(lane, model.first, k + i, float_of(block.words[i]));
    }
  }
  Layers second;
  second.set_biases(lane, model.second_biases());
#pragma unroll
  for (std::uint32_t index = 0; index < kHidden / 32; ++index) {
#pragma unroll 4
    for (std::uint32_t from = 0; from < 32; ++from) {
      const float number = group.from_lane(relu(first.numbers[index]), from);
      second.add(lane, model.second, Layers::number(index, from), number);
    }
  }
#pragma unroll 1
  for (std::uint32_t j = 0; j < kOutputs; ++j) {
    float sum = 0;
#pragma unroll
    for (std::uint32_t index = 0; index < kHidden / 32; ++index) {
      const Stored* const weight = model.last + j * kHidden + Layers::number(index, lane);
      sum += relu(second.numbers[index]) * number_of(__ldg(weight));
    }
    outputs[j] = reduce_sum(group, sum) + __ldg(model.last_biases() + j);
  }
}

/// The data of a message that a block's threads share.
template <class Stored>
struct BlockNumbers {
  static constexpr std::uint32_t kRun = Weights<Stored>::kCount;
  static constexpr std::uint32_t kColumns = kHidden / kRun;  ///< threads for all of one input's
  static constexpr std::uint32_t kMostSlices = 512 / kColumns;

  float numbers[kHidden];            ///< of the layer before
  float sums[kMostSlices][kHidden];  ///< each over a slice of the inputs
  float outputs[kOutputs];

  /// Replaces `numbers` by the layer's outputs; the layer reads `count` of them. A thread adds for a
  /// run of outputs over a slice of the inputs, and has eight reads of weights in progress: 64 KiB a
  /// block, as the latency of the L2 cache is long.
  __device__ void layer(std::uint32_t count, const Stored* weights, const float* biases) {
    constexpr std::uint32_t kUnderWay = 8;
    const std::uint32_t size = ThreadBlock::size();
    const std::uint32_t slices = size > kColumns ? size / kColumns : 1;
    for (std::uint32_t item = ThreadBlock::lane(); item < slices * kColumns; item += size) {
      const std::uint32_t column = item % kColumns;
      const std::uint32_t slice = item / kColumns;
      float sum[kRun] = {};
      for (std::uint32_t k = slice; k < count; k += kUnderWay * slices) {
        Weights<Stored> read[kUnderWay];
#pragma unroll
        for (std::uint32_t n = 0; n < kUnderWay; ++n) {
          read[n].read(weights, (k + n * slices) * kColumns + column);
        }
#pragma unroll
        for (std::uint32_t n = 0; n < kUnderWay; ++n) {
          const float number = numbers[k + n * slices];
#pragma unroll
          for (std::uint32_t i = 0; i < kRun; ++i) sum[i] += number * read[n].at(i);
        }
      }
#pragma unroll
      for (std::uint32_t i = 0; i < kRun; ++i) sums[slice][column * kRun + i] = sum[i];
    }
    ThreadBlock::sync();
    for (std::uint32_t j = ThreadBlock::lane(); j < kHidden; j += size) {
      float sum = __ldg(biases + j);
      for (std::uint32_t slice = 0; slice < slices; ++slice) sum += sums[slice][j];
      numbers[j] = relu(sum);
    }
    ThreadBlock::sync();
  }

  /// A warp for each output.
  __device__ void last_layer(const Stored* weights, const float* biases) {
    const std::uint32_t lane = threadIdx.x % 32;
    for (std::uint32_t j = threadIdx.x / 32; j < kOutputs; j += blockDim.x / 32) {
      float sum = 0;
#pragma unroll
      for (std::uint32_t k = 0; k < kHidden; k += 32) {
        sum += numbers[k + lane] * number_of(__ldg(weights + j * kHidden + k + lane));
      }
      sum = reduce_sum(Warp{}, sum);
      if (lane == 0) outputs[j] = sum + __ldg(biases + j);
    }
    ThreadBlock::sync();
  }
};

template <class Stored>
__device__ __noinline__ void run(const ThreadBlock& group, const Request& request,
                                 const Model<Stored>& model, float* outputs) {
  __shared__ BlockNumbers<Stored> shared;
  for (std::uint32_t i = group.lane(); i < kInputs / 4; i += group.size()) {
    const Block block = request.block(i * sizeof(Block));
#pragma unroll
    for (std::uint32_t word = 0; word < 4; ++word) {
      shared.numbers[4 * i + word] = float_of(block.words[word]);
    }
  }
  group.sync();
  shared.layer(kInputs, model.first, model.biases);
  shared.layer(kHidden, model.second, model.second_biases());
  shared.last_layer(model.last, model.last_biases());
#pragma unroll
  for (std::uint32_t j = 0; j < kOutputs; ++j) outputs[j] = shared.outputs[j];
}

#endif

}  // namespace mlp

/// A multilayer perceptron, 256 - 512 - 512 - 10, with ReLU between its layers: answers 256 numbers
/// with 10, fp32, little endian. A request of another length gets an empty answer.
///
/// Sums are of fp32, in an order that depends on the group: see README.md.
struct Mlp {
  static constexpr const char* kName = "mlp";
  static constexpr std::uint32_t kLanes = 32;

  OFFLOAD_HOST_DEVICE static std::uint32_t response_length(std::uint32_t length) {
    return length == mlp::kInputs * sizeof(float) ? mlp::kOutputs * sizeof(float) : 0;
  }

  template <class Group, class Response>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, const Request& request,
                                      const Response& response) const {
    float outputs[mlp::kOutputs] = {};
    if (response.length() != 0) {  // the same for all lanes
      if (bf16_.first != nullptr) {
        mlp::run(group, request, bf16_, outputs);
      } else {
        mlp::run(group, request, fp32_, outputs);
      }
    }
    response.fill(group, [&](std::uint32_t offset) {
      Block block{};
      OFFLOAD_UNROLL
      for (std::uint32_t i = 0; i < 4; ++i) block.words[i] = word_of(outputs, offset / 4 + i);
      return block;
    });
  }

  /// Makes the service from --service-option weights=FILE, kept as storage=fp32 or bf16. Throws
  /// std::exception.
  static Mlp make(ServiceSetup& setup) {
    const std::vector<float> parameters = read(setup.option("weights"));
    const std::string storage = setup.option("storage", "fp32");
    Mlp made{};
    if (storage == "fp32") {
      made.fp32_ = model_of<float>(parameters, setup, [](float weight) { return weight; });
    } else if (storage == "bf16") {
      made.bf16_ = model_of<std::uint16_t>(parameters, setup, to_bf16);
    } else {
      throw std::invalid_argument("storage=" + storage + " is neither fp32 nor bf16");
    }
    return made;
  }

 private:
  static constexpr std::size_t kParameters = (mlp::kInputs + 1) * mlp::kHidden +
                                             (mlp::kHidden + 1) * mlp::kHidden +
                                             (mlp::kHidden + 1) * mlp::kOutputs;

  /// Selects by comparing: an index that is not constant would move the numbers out of a GPU's
  /// registers.
  OFFLOAD_HOST_DEVICE static std::uint32_t word_of(const float (&outputs)[mlp::kOutputs],
                                                   std::uint32_t index) {
    std::uint32_t word = 0;
    OFFLOAD_UNROLL
    for (std::uint32_t j = 0; j < mlp::kOutputs; ++j) {
      if (j == index) std::memcpy(&word, &outputs[j], sizeof word);
    }
    return word;
  }

  /// Rounds to the nearest, ties to even.
  static std::uint16_t to_bf16(float weight) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &weight, sizeof bits);
    if (weight != weight) return 0x7fc0;
    return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1U)) >> 16);
  }

  /// `parameters`: of each layer, weights[outputs][inputs] and biases, as PyTorch has them.
  template <class Stored, class Convert>
  static mlp::Model<Stored> model_of(const std::vector<float>& parameters,
                                     const ServiceSetup& setup, Convert convert) {
    const float* from = parameters.data();
    std::vector<float> biases;
    const auto take = [&](std::uint32_t inputs, std::uint32_t outputs, bool by_input) {
      std::vector<Stored> weights(std::size_t{inputs} * outputs);
      for (std::uint32_t j = 0; j < outputs; ++j) {
        for (std::uint32_t k = 0; k < inputs; ++k) {
          weights[by_input ? std::size_t{k} * outputs + j : std::size_t{j} * inputs + k] =
              convert(*from++);
        }
      }
      biases.insert(biases.end(), from, from + outputs);
      from += outputs;
      return setup.copy(weights);
    };
    mlp::Model<Stored> model{};
    model.first = take(mlp::kInputs, mlp::kHidden, true);
    model.second = take(mlp::kHidden, mlp::kHidden, true);
    model.last = take(mlp::kHidden, mlp::kOutputs, false);
    model.biases = setup.copy(biases);
    return model;
  }

  /// A .npy file (NumPy's format, versions 1 to 3) of one dimension of '<f4'. Throws
  /// std::exception.
  static std::vector<float> read(const std::string& path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                               std::fclose);
    if (file == nullptr) throw std::runtime_error(path + ": " + std::strerror(errno));
    unsigned char start[12];
    const auto get = [&](void* to, std::size_t bytes) {
      if (std::fread(to, 1, bytes, file.get()) != bytes) {
        throw std::runtime_error(path + ": ends too early for a .npy file of " +
                                 std::to_string(kParameters) + " parameters");
      }
    };
    get(start, 10);
    if (std::memcmp(start, "\x93NUMPY", 6) != 0 || start[6] < 1 || start[6] > 3) {
      throw std::runtime_error(path + ": not a .npy file");
    }
    std::size_t length = start[8] | static_cast<std::size_t>(start[9]) << 8;
    if (start[6] != 1) {
      get(start + 10, 2);
      length |= static_cast<std::size_t>(start[10]) << 16 | static_cast<std::size_t>(start[11])
                                                                << 24;
    }
    constexpr std::size_t kLongestHeader = 4096;
    if (length > kLongestHeader) throw std::runtime_error(path + ": too long a header");
    std::string header(length, '\0');
    get(header.data(), length);
    const std::string shape = "(" + std::to_string(kParameters) + ",)";
    if (header.find("'<f4'") == std::string::npos || header.find(shape) == std::string::npos) {
      throw std::runtime_error(path + ": not an array of float32 of shape " + shape);
    }
    std::vector<float> parameters(kParameters);
    get(parameters.data(), kParameters * sizeof(float));
    return parameters;
  }

  mlp::Model<float> fp32_;
  mlp::Model<std::uint16_t> bf16_;
};

OFFLOAD_SERVICE_MODULE(Mlp);
