#pragma once

#include <exception>
#include <string_view>

/// What a program says where it has no memory to say it with.
namespace offload::core {

/// error.what(), for people: of std::bad_alloc it is the text for ENOMEM, with the limit of address
/// space if there is one. Needs no memory. Any thread.
const char* what_of(const std::exception& error) noexcept;

/// Whether there is memory for a message and the exception that brings it. An exception that there
/// is no memory for ends the process by std::terminate().
[[nodiscard]] bool has_memory_for_errors() noexcept;

/// Writes "program: text" to standard error at once, before the log's lines. Needs no memory. Any
/// thread.
void print_without_memory(std::string_view program, std::string_view text) noexcept;

}  // namespace offload::core
