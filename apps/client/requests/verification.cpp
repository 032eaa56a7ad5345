#include "apps/client/requests/verification.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

#include "core/clock.hpp"
#include "core/escape.hpp"
#include "core/fd.hpp"
#include "core/process/child.hpp"
#include "core/units.hpp"

namespace offload::client {
namespace {

/// A command that takes longer for one request was not meant to be run for each of them.
constexpr core::Duration kLongestCommand = std::chrono::seconds(30);
/// Commands that a run starts: with 5 ms for each, that is a third of a second.
constexpr std::size_t kMostCommands = 64;
constexpr std::size_t kLeastCommands = 2;

constexpr std::string_view kLengthPrefix = "length:";
constexpr std::string_view kFilePrefix = "file:";
constexpr std::string_view kCommandPrefix = "command:";

/// A file in memory with `content`, at its beginning.
core::Fd file_of(std::span<const std::byte> content) {
  core::Fd file(core::check_errno(::memfd_create("request", MFD_CLOEXEC), "memfd_create"));
  while (!content.empty()) {
    const ssize_t count =
        core::check_errno(::write(file.get(), content.data(), content.size()), "memfd write");
    content = content.subspan(static_cast<std::size_t>(count));
  }
  core::check_errno(::lseek(file.get(), 0, SEEK_SET), "memfd lseek");
  return file;
}

pid_t start_shell(const std::string& command, int input, int output) {
  posix_spawn_file_actions_t actions;
  core::check_spawn(::posix_spawn_file_actions_init(&actions), "posix_spawn_file_actions_init");
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  const core::SpawnAttributes attributes;
  std::vector<std::string> words{"/bin/sh", "-c", command};
  pid_t process = -1;
  const int status = ::posix_spawn(&process, words.front().c_str(), &actions, attributes.get(),
                                   core::pointers_to(words).data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  core::check_spawn(status, "cannot start /bin/sh");
  return process;
}

/// Runs `command` with `request` on its standard input. Returns its output.
std::vector<std::byte> run_command(const std::string& command, std::span<const std::byte> request,
                                   const core::Signals& signals) {
  const auto fail = [&](const std::string& why) {
    throw InvalidInput(fmt::format("--verify: the command '{}' {}", core::escaped(command), why));
  };
  int ends[2];
  core::check_errno(::pipe2(ends, O_CLOEXEC), "pipe2");
  const core::Fd reading(ends[0]);
  core::Fd writing(ends[1]);
  core::ProcessGroup process(start_shell(command, file_of(request).get(), writing.get()));
  writing.reset();
  std::vector<std::byte> output;
  const core::OutputReader reader{[&](std::span<const char> piece) {
                                    const auto bytes = std::as_bytes(piece);
                                    output.insert(output.end(), bytes.begin(), bytes.end());
                                    if (output.size() > kLongestMessage)
                                      fail("printed more than 16 MiB");
                                  },
                                  [] { throw core::Interrupted(); }};
  if (!core::read_until_end(process, reading.get(), signals.fd(),
                            core::Clock::now() + kLongestCommand, reader)) {
    fail(fmt::format("did not finish within {} s", core::to_seconds(kLongestCommand)));
  }
  if (const auto failure = process.failure(); !failure.empty()) {
    fail(fmt::format("failed for a request of {} bytes: {}", request.size(), failure));
  }
  return output;
}

}  // namespace

std::vector<std::byte> read_bytes(const std::string& path, std::size_t most) {
  const auto refuse = [&] {
    throw InvalidInput(fmt::format("cannot read '{}': {}", path, core::describe_errno(errno)));
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse();
  std::vector<std::byte> content;
  std::array<char, 65536> bytes;
  while (file) {
    file.read(bytes.data(), bytes.size());
    if (file.bad()) refuse();
    const auto read =
        std::as_bytes(std::span(bytes)).first(static_cast<std::size_t>(file.gcount()));
    content.insert(content.end(), read.begin(), read.end());
    if (content.size() > most) {
      throw InvalidInput(fmt::format("'{}' has more than {} MiB", path, most >> 20));
    }
  }
  return content;
}

std::optional<Verification> Verification::parse(const std::string& text) {
  Verification made;
  made.text = text;
  const auto takes = [&](std::string_view prefix, Kind its_kind) {
    if (!text.starts_with(prefix) || text.size() == prefix.size()) return false;
    made.kind = its_kind;
    made.argument = text.substr(prefix.size());
    return true;
  };
  if (text == "builtin") return made;
  if (takes(kFilePrefix, Kind::file) || takes(kCommandPrefix, Kind::command)) return made;
  made.kind = text == "none" ? Kind::none : text == "recorded" ? Kind::recorded : Kind::length;
  if (made.kind != Kind::length || text == "length") return made;
  if (!text.starts_with(kLengthPrefix)) return std::nullopt;
  const auto size = core::parse_size(std::string_view(text).substr(kLengthPrefix.size()));
  if (!size || *size > kLongestMessage) return std::nullopt;
  made.bytes = static_cast<std::uint32_t>(*size);
  return made;
}

Answers::Answers(Verification verification, Service service, const core::Signals& signals)
    : verification_(std::move(verification)), service_(service), signals_(&signals) {
  if (verification_.kind == Verification::Kind::file) {
    answer_ = read_bytes(verification_.argument, kLongestMessage);
  }
}

Expected Answers::to(std::span<const std::byte> request) {
  switch (verification_.kind) {
    case Verification::Kind::none:
    case Verification::Kind::recorded: return Expected::of_length(Expected::kAnyLength);
    case Verification::Kind::length:
      return Expected::of_length(
          verification_.bytes.value_or(static_cast<std::uint32_t>(request.size())));
    case Verification::Kind::file: return std::span<const std::byte>(answer_);
    case Verification::Kind::builtin: answer_ = expected_response(service_, request); break;
    case Verification::Kind::command:
      if (has_answer_ && std::ranges::equal(request, last_request_)) break;
      answer_ = run_command(verification_.argument, request, *signals_);
      last_request_.assign(request.begin(), request.end());
      has_answer_ = true;
      break;
  }
  return std::span<const std::byte>(answer_);
}

std::size_t Answers::most_of_class(std::size_t classes) const noexcept {
  if (verification_.kind != Verification::Kind::command) return SIZE_MAX;
  return std::max(kMostCommands / classes, kLeastCommands);
}

}  // namespace offload::client
