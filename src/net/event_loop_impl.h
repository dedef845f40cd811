// The implementation of EventLoop: an Asio context and its thread. Internal to net/.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <thread>

#include "net/event_loop.h"
#include "net/http_loop.h"

namespace lockstep {

struct EventLoop::Impl {
  boost::asio::io_context context{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{
      context.get_executor()};
  std::shared_ptr<HttpLoop> queue = std::make_shared<HttpLoop>(context);
  std::thread thread;
};

}  // namespace lockstep
