#pragma once

#include <exception>
#include <string_view>

/// Error messages for a program that is out of memory.
namespace offload::core {

/// error.what(), for people: of std::bad_alloc it is the text for ENOMEM, with the limit of address
/// space if there is one. Needs no memory. Any thread.
const char* what_of(const std::exception& error) noexcept;

/// Returns whether there is memory for a message and its exception. Without memory, throwing an
/// exception ends the process by std::terminate().
[[nodiscard]] bool has_memory_for_errors() noexcept;

/// Writes "program: text" to standard error at once, before the log's lines. Needs no memory. Any
/// thread.
void print_without_memory(std::string_view program, std::string_view text) noexcept;

}  // namespace offload::core
