// HttpLoop: the way other threads reach the event loop. Work runs on the loop's thread in exactly
// the order in which it was posted, whatever the thread; after close() it is dropped. Replies
// outlive the server, this makes it safe.
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
  // Before the io_context goes. What was posted and has not run never will.
  void close();

 private:
  void run_posted();

  std::mutex mutex_;
  boost::asio::io_context* context_;         // null after close()
  std::vector<std::function<void()>> work_;  // bounded by the unsent bytes of the connections
};

}  // namespace lockstep
