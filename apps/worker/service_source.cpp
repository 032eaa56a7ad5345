#include "apps/worker/service_source.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "apps/worker/compiler.hpp"
#include "backend/backend.hpp"
#include "core/error.hpp"
#include "core/escape.hpp"
#include "core/log.hpp"

namespace offload::worker {
namespace {

using core::Error;
using core::ErrorCode;

constexpr const char* kModule = "module.so";
/// The path of the headers from the program's folder, also in a build's tree and a bundle.
constexpr const char* kHeaders = "../include/dpu-gpu-offload";

Error bad_source(const std::string& path, ErrorCode code, const std::string& what) {
  return {code, fmt::format("service source '{}': {}", core::escaped(path), what)};
}

/// The program `name` of PATH or else of `further` folders; empty: there is none. Folders that
/// depend on where the worker was started are left out.
std::string find_program(const char* name, std::vector<std::string> further = {}) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  std::vector<std::string> all;
  for (std::string folder; std::getline(folders, folder, ':');) all.push_back(folder);
  all.insert(all.end(), further.begin(), further.end());
  for (const std::string& folder : all) {
    if (!folder.starts_with('/')) continue;
    std::string program = folder + "/" + name;
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

std::string find_headers() {
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  const auto folder = (program.parent_path() / kHeaders).lexically_normal();
  const auto header = folder / "kernels/module/service_module.hpp";
  if (!std::filesystem::exists(header, failed)) {
    throw Error(
        ErrorCode::not_found,
        fmt::format("--service-source: {} is missing: install the package libdpu-gpu-offload-dev",
                    header.string()));
  }
  return folder.string();
}

std::vector<std::string> cpu_command(const std::string& headers) {
  const std::string compiler = find_program("c++");
  if (compiler.empty()) {
    throw Error(
        ErrorCode::not_found,
        "--service-source: there is no C++ compiler (c++) in PATH: install the package g++");
  }
  return {compiler,       "-std=c++17", "-O2", "-shared", "-fPIC", "-fvisibility=hidden",
          "-I" + headers, "-x",         "c++"};
}

std::vector<std::string> gpu_command(const std::string& headers,
                                     const std::set<std::string>& architectures) {
  std::vector<std::string> further;
  if (const char* const toolkit = std::getenv("CUDA_PATH"); toolkit != nullptr) {
    further.push_back(std::string(toolkit) + "/bin");
  }
  further.emplace_back("/usr/local/cuda/bin");
  const std::string compiler = find_program("nvcc", std::move(further));
  if (compiler.empty()) {
    throw Error(ErrorCode::not_found,
                "--service-source: there is no nvcc in PATH, CUDA_PATH or /usr/local/cuda: install "
                "the package nvidia-cuda-toolkit, or cuda-nvcc of NVIDIA; --backend cpu needs only "
                "a C++ compiler");
  }
  std::vector<std::string> command{
      compiler,      "-std=c++17", "-O3", "-shared", "-Xcompiler=-fPIC,-fvisibility=hidden",
      "-I" + headers};
  for (const std::string& each : architectures) {
    command.push_back(fmt::format("-gencode=arch=compute_{0},code=sm_{0}", each));
  }
  return command;
}

/// Those of the GPUs that will serve, as nvcc calls them; none: the CPU will.
std::set<std::string> architectures_of(const Options& options) {
  std::set<std::string> architectures;
  if (options.backend == "cpu") return architectures;
  auto gpus = options.gpu_pci_addresses;
  if (gpus.empty()) gpus.emplace_back();
  for (const std::string& gpu : gpus) {
    try {
      architectures.insert(backend::gpu_architecture(gpu));
    } catch (const Error&) {
      if (options.backend != "auto" || !gpu.empty()) throw;  // else as open_backend() has it
    }
  }
  return architectures;
}

/// Line by line, as there may be anything in a file that is quoted.
void print_output(const std::string& output) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::fputs((core::escaped(line) + "\n").c_str(), stderr);
  }
}

/// The module that `command` makes of the source at `path`.
core::Fd compile(std::vector<std::string> command, const std::string& path,
                 core::Signals& signals) {
  std::error_code failed;
  const auto source = std::filesystem::absolute(path, failed);
  if (!std::filesystem::is_regular_file(source, failed)) {
    throw bad_source(path, ErrorCode::not_found, "there is no such file");
  }
  const std::string compiler = command.front();
  command.insert(command.end(), {source.string(), "-o", kModule});
  core::log_info("compiling {} by {}", core::escaped(path), compiler);
  const PrivateFolder folder;
  const CompilerRun run = run_compiler(command, folder, signals);
  print_output(run.output);
  if (!run.failure.empty()) {
    throw bad_source(path, ErrorCode::invalid_value,
                     fmt::format("{} failed to compile it: {}", compiler, run.failure));
  }
  return folder.open_file(kModule);
}

}  // namespace

backend::Services make_services(const Options& options, core::Signals& signals) {
  backend::Services services(options.service_modules, options.service_options);
  if (options.service_sources.empty()) return services;
  const std::string headers = find_headers();
  const auto architectures = architectures_of(options);
  std::vector<core::Fd> modules;  // open until all are loaded: dlopen(3) knows libraries by name
  for (const std::string& path : options.service_sources) {
    const bool for_gpus = !architectures.empty() && path.ends_with(".cu");
    modules.push_back(compile(for_gpus ? gpu_command(headers, architectures) : cpu_command(headers),
                              path, signals));
    services.add(path, fmt::format("/proc/self/fd/{}", modules.back().get()));
  }
  return services;
}

}  // namespace offload::worker
