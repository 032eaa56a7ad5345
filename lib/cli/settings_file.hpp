#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"

namespace offload::cli {

/// A file with those options that may change while a program runs: a JSON object such as
/// {"log-level": "debug", "worker-timeout": "2s"}, with the options' long names and notation. What
/// it does not name has the value that the command line gave. One thread.
class SettingsFile {
 public:
  using Apply = std::function<void()>;
  /// What takes a text over, or nothing if the text is wrong.
  using Take = std::function<std::optional<Apply>(const std::string& text)>;

  /// Empty: there is no file.
  explicit SettingsFile(std::string path) : path_(std::move(path)) {}

  /// --log-level: changes `level` and the log's.
  void add_log_level(std::string& level);
  /// A time of at least `shortest`. `value` has the command line's now.
  void add_time(const std::string& name, core::Duration& value, core::Duration shortest = {});
  /// Any other. `allowed` completes the sentence "'...' is not ..."; `restore`: takes the command
  /// line's value over.
  void add(const std::string& name, Take take, const std::string& allowed, Apply restore);

  /// Reads the file and returns what takes all of it over, which refers to this. Throws Error,
  /// which names file and setting, if it is not there or anything in it is wrong.
  [[nodiscard]] Apply read() const;

 private:
  struct Setting {
    std::string name;
    Take take;
    std::string allowed;
    Apply restore;
  };

  std::string path_;
  std::vector<Setting> settings_;
};

}  // namespace offload::cli
