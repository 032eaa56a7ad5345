#include "apps/client/requests/arrivals.hpp"

#include <algorithm>

namespace offload::client {

Arrivals Arrivals::constant(double per_second, double first) {
  Arrivals arrivals(Kind::constant);
  arrivals.gap_ = 1 / per_second;
  arrivals.first_ = first;
  arrivals.next_ = core::seconds(first);
  return arrivals;
}

Arrivals Arrivals::poisson(double per_second, std::uint64_t seed) {
  Arrivals arrivals(Kind::poisson);
  arrivals.random_.seed(seed);
  arrivals.gaps_ = std::exponential_distribution<double>(per_second);
  arrivals.advance();
  return arrivals;
}

Arrivals Arrivals::replay(std::span<const ScheduledRequest> requests, std::size_t first,
                          std::size_t step) {
  Arrivals arrivals(Kind::replay);
  arrivals.requests_ = requests.subspan(std::min(first, requests.size()));
  arrivals.step_ = step;
  arrivals.take_scheduled();
  return arrivals;
}

void Arrivals::take_scheduled() noexcept {
  next_ = requests_.empty() ? core::Duration::max() : requests_.front().offset;
  size_class_ = requests_.empty() ? 0 : requests_.front().size_class;
}

void Arrivals::advance() {
  switch (kind_) {
    case Kind::constant:
      next_ = core::seconds(first_ + gap_ * static_cast<double>(++count_));
      break;
    case Kind::poisson:
      time_ += gaps_(random_);
      next_ = core::seconds(time_);
      break;
    case Kind::replay:
      requests_ = requests_.subspan(std::min(step_, requests_.size()));
      take_scheduled();
      break;
  }
}

}  // namespace offload::client
