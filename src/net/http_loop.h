// HttpLoop: lets other threads post work to the event loop. Work runs on the loop's thread in
// exactly the order of posting, from any thread; after close() it is dropped, which makes it safe
// for replies to outlive the server.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace lockstep {

class HttpLoop : public std::enable_shared_from_this<HttpLoop> {
 public:
  explicit HttpLoop(boost::asio::io_context& context) : context_(&context) {}

  void post(std::function<void()> work);
  // Call before the io_context is destroyed. Pending work never runs.
  void close();

 private:
  void run_posted();

  std::mutex mutex_;
  boost::asio::io_context* context_;         // null after close()
  std::vector<std::function<void()>> work_;  // bounded by the unsent bytes of the connections
};

}  // namespace lockstep
