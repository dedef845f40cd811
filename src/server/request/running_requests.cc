#include "server/request/running_requests.h"

namespace lockstep {

RunningRequests::Entry::~Entry() {
  if (const auto list = list_.lock()) list->remove(number_);
}

RunningRequests::Entry RunningRequests::add(std::weak_ptr<RunningRequest> request, std::string id) {
  const std::lock_guard lock(mutex_);
  const uint64_t number = ++last_number_;
  items_.emplace(number, Item{std::move(id), std::move(request)});
  return {weak_from_this(), number};
}

void RunningRequests::remove(uint64_t number) {
  const std::lock_guard lock(mutex_);
  items_.erase(number);
}

// Held outside the lock: the last owner of a request removes it from the list.
std::vector<std::pair<std::string, std::shared_ptr<RunningRequest>>> RunningRequests::running()
    const {
  std::vector<std::pair<std::string, std::shared_ptr<RunningRequest>>> found;
  const std::lock_guard lock(mutex_);
  for (const auto& [number, item] : items_) {
    if (auto request = item.request.lock()) found.emplace_back(item.id, std::move(request));
  }
  return found;
}

std::vector<RequestFigures> RunningRequests::list() const {
  std::vector<RequestFigures> list;
  for (const auto& [id, request] : running()) {
    auto figures = request->figures();
    if (!figures) continue;
    figures->id = id;
    list.push_back(std::move(*figures));
  }
  return list;
}

std::shared_ptr<RunningRequest> RunningRequests::find(std::string_view id) const {
  for (const auto& [known, request] : running()) {
    if (known == id) return request;
  }
  return nullptr;
}

}  // namespace lockstep
