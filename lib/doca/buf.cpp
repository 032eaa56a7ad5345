#include "doca/buf.hpp"

#include <utility>

#include "doca/guard.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::memory::Buffer;
using offload::memory::BufferRef;

namespace {

/// Writes what `of` returns for a buffer in use.
template <class Handle, class Value, class Function>
doca_error_t get(Handle* buf, Value* value, Function of) noexcept {
  auto* const buffer = buffer_of(buf);
  if (buffer == nullptr || value == nullptr) return DOCA_ERROR_INVALID_VALUE;
  *value = static_cast<Value>(of(*buffer));
  return DOCA_SUCCESS;
}

doca_error_t set_data_len(Buffer& buffer, std::size_t length) noexcept {
  const bool fits = buffer.set_data(buffer.headroom().size(), length);
  return fits ? DOCA_SUCCESS : DOCA_ERROR_INVALID_VALUE;
}

Buffer* last_of(Buffer& first) noexcept {
  Buffer* last = &first;
  while (last->next() != nullptr) last = last->next();
  return last;
}

}  // namespace

doca_error_t doca_buf_inc_refcount(doca_buf* buf, uint16_t* refcount) {
  Buffer* const buffer = buffer_of(buf);
  if (buffer == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (!buffer->is_head()) return DOCA_ERROR_NOT_PERMITTED;
  if (buffer->own_references() == UINT16_MAX) return DOCA_ERROR_TOO_BIG;
  if (refcount != nullptr) *refcount = static_cast<std::uint16_t>(buffer->own_references());
  static_cast<void>(BufferRef::share(*buffer).release());
  return DOCA_SUCCESS;
}

doca_error_t doca_buf_dec_refcount(doca_buf* buf, uint16_t* refcount) {
  if (buf == nullptr) return DOCA_ERROR_INVALID_VALUE;
  Buffer* const buffer = buffer_of(buf);
  if (buffer == nullptr) return DOCA_ERROR_BAD_STATE;
  if (!buffer->is_head()) return DOCA_ERROR_NOT_PERMITTED;
  if (refcount != nullptr) *refcount = static_cast<std::uint16_t>(buffer->own_references());
  BufferRef::adopt(*buffer).reset();
  return DOCA_SUCCESS;
}

doca_error_t doca_buf_get_refcount(const doca_buf* buf, uint16_t* refcount) {
  return get(buf, refcount, [](const Buffer& buffer) { return buffer.own_references(); });
}

doca_error_t doca_buf_get_len(const doca_buf* buf, size_t* len) {
  return get(buf, len, [](const Buffer& buffer) { return buffer.dataroom().size(); });
}

doca_error_t doca_buf_get_head(const doca_buf* buf, void** head) {
  return get(buf, head, [](const Buffer& buffer) { return buffer.dataroom().data(); });
}

doca_error_t doca_buf_get_data(const doca_buf* buf, void** data) {
  return get(buf, data, [](const Buffer& buffer) { return buffer.data().data(); });
}

doca_error_t doca_buf_get_data_len(const doca_buf* buf, size_t* data_len) {
  return get(buf, data_len, [](const Buffer& buffer) { return buffer.data().size(); });
}

doca_error_t doca_buf_set_data(doca_buf* buf, void* data, size_t data_len) {
  Buffer* const buffer = buffer_of(buf);
  if (buffer == nullptr || data == nullptr) return DOCA_ERROR_INVALID_VALUE;
  // It compares numbers, because a difference of pointers into different objects is undefined.
  const auto head = reinterpret_cast<std::uintptr_t>(buffer->dataroom().data());
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  if (at < head || !buffer->set_data(at - head, data_len)) return DOCA_ERROR_INVALID_VALUE;
  return DOCA_SUCCESS;
}

doca_error_t doca_buf_set_data_len(doca_buf* buf, size_t data_len) {
  Buffer* const buffer = buffer_of(buf);
  if (buffer == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return set_data_len(*buffer, data_len);
}

doca_error_t doca_buf_reset_data_len(doca_buf* buf) {
  Buffer* const buffer = buffer_of(buf);
  if (buffer == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return set_data_len(*buffer, 0);
}

doca_error_t doca_buf_chain_list(doca_buf* list1, doca_buf* list2) {
  Buffer* const head = buffer_of(list1);
  Buffer* const tail = buffer_of(list2);
  if (head == nullptr || tail == nullptr) return DOCA_ERROR_INVALID_VALUE;
  // The list takes over the only one.
  if (tail->is_head() && tail->references() != 1) return DOCA_ERROR_NOT_PERMITTED;
  BufferRef reference = BufferRef::adopt(*tail);
  if (head->append_chain(reference)) return DOCA_SUCCESS;
  static_cast<void>(reference.release());
  return DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_buf_unchain_list(doca_buf* list1, doca_buf* list2) {
  Buffer* const head = buffer_of(list1);
  const Buffer* const element = buffer_of(list2);
  if (head == nullptr || element == nullptr) return DOCA_ERROR_INVALID_VALUE;
  BufferRef rest = head->unlink(*element);
  return rest.release() != nullptr ? DOCA_SUCCESS : DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_buf_get_next_in_list(doca_buf* buf, doca_buf** next) {
  Buffer* const buffer = buffer_of(buf);
  if (buffer == nullptr || next == nullptr) return DOCA_ERROR_INVALID_VALUE;
  *next = handle_of(buffer->next());
  return DOCA_SUCCESS;
}

doca_error_t doca_buf_get_last_in_list(doca_buf* buf, doca_buf** last) {
  Buffer* const buffer = buffer_of(buf);
  if (buffer == nullptr || last == nullptr) return DOCA_ERROR_INVALID_VALUE;
  *last = handle_of(last_of(*buffer));
  return DOCA_SUCCESS;
}

doca_error_t doca_buf_is_first_in_list(const doca_buf* buf, uint8_t* is_first) {
  return get(buf, is_first, [](const Buffer& buffer) { return buffer.is_head(); });
}

doca_error_t doca_buf_is_last_in_list(const doca_buf* buf, uint8_t* is_last) {
  return get(buf, is_last, [](const Buffer& buffer) { return buffer.next() == nullptr; });
}

doca_error_t doca_buf_get_list_len(const doca_buf* buf, uint32_t* num_elements) {
  const Buffer* const buffer = buffer_of(buf);
  if (buffer != nullptr && !buffer->is_head()) return DOCA_ERROR_NOT_PERMITTED;
  return get(buf, num_elements, [](const Buffer& head) { return head.element_count(); });
}
