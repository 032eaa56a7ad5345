#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "net/source/source.hpp"

namespace offload::net {

/// Chooses `count` of `all` to make room for others: one after the other, of the source that then
/// has the most, so that a source never loses one to another that has more. For a source, and among
/// sources with the same number, chooses the first in `all`. Throws std::bad_alloc.
template <class T, class SourceOf>
std::vector<T*> choose_to_make_room(const std::vector<T*>& all, std::size_t count,
                                    SourceOf source_of) {
  struct Share {
    std::size_t first;  ///< of its elements, in `all`
    std::size_t keeps = 0;
    std::size_t loses = 0;
  };
  std::map<Source, Share> shares;
  for (std::size_t i = 0; i < all.size(); ++i) {
    ++shares.try_emplace(source_of(*all[i]), Share{i}).first->second.keeps;
  }
  std::vector<Share*> heap;
  for (auto& [source, share] : shares) heap.push_back(&share);
  const auto later = [](const Share* one, const Share* other) {
    return one->keeps != other->keeps ? one->keeps < other->keeps : one->first > other->first;
  };
  std::ranges::make_heap(heap, later);
  for (std::size_t i = 0; i < std::min(count, all.size()); ++i) {
    std::ranges::pop_heap(heap, later);
    --heap.back()->keeps;
    ++heap.back()->loses;
    std::ranges::push_heap(heap, later);
  }
  std::vector<T*> chosen;
  for (T* const each : all) {
    Share& share = shares.at(source_of(*each));
    if (share.loses == 0) continue;
    --share.loses;
    chosen.push_back(each);
  }
  return chosen;
}

}  // namespace offload::net
