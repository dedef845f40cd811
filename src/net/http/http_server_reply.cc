#include "net/http/http_server_reply.h"

#include <utility>

#include "base/log.h"
#include "base/threads/guarded.h"
#include "net/http/http_connection.h"

namespace lockstep {
namespace {

void add_headers(HttpResponse& response, const HttpReply::Terms& terms) {
  response.headers.insert(response.headers.end(), terms.headers.begin(), terms.headers.end());
}

}  // namespace

template <class Action>
void HttpReply::Impl::post(Action action) const {
  loop->post([weak = connection, state = state, action = std::move(action)]() mutable {
    const std::shared_ptr<HttpConnection> connection = weak.lock();
    if (connection == nullptr || !connection->is_answering(state.get())) return;
    connection->run([&] { action(*connection); });
  });
}

// Without memory for the post, the client waits until it gives up: a destructor cannot do more.
HttpReply::Impl::~Impl() {
  if (is_complete.load(std::memory_order_relaxed)) return;
  const Status done =
      guarded([this] { post([](HttpConnection& connection) { connection.abandon(); }); });
  if (!done.ok()) {
    log_error("http: a dropped reply could not be ended: {}", done.error().message);
  }
}

uint64_t HttpReply::caller() const {
  return impl_->terms.caller;
}

const std::string& HttpReply::client() const {
  return impl_->terms.client;
}

const std::string& HttpReply::route() const {
  return impl_->terms.route;
}

void HttpReply::send(HttpResponse response) const {
  add_headers(response, impl_->terms);
  impl_->is_complete.store(true, std::memory_order_relaxed);
  impl_->post([response = std::move(response)](HttpConnection& connection) mutable {
    connection.send(std::move(response));
  });
}

void HttpReply::start(int status, std::string content_type,
                      std::vector<std::pair<std::string, std::string>> headers) const {
  HttpResponse head{status, std::move(content_type), "", std::move(headers)};
  add_headers(head, impl_->terms);
  impl_->post(
      [head = std::move(head)](HttpConnection& connection) { connection.start_reply(head); });
}

void HttpReply::write(std::string piece) const {
  write(std::move(piece), nullptr);
}

void HttpReply::write(std::string piece, std::function<void()> on_taken) const {
  if (piece.empty() || !is_open()) return;
  const size_t unsent = impl_->state->unsent_bytes.fetch_add(piece.size()) + piece.size();
  if (unsent > impl_->unsent_bytes_max) {
    impl_->state->is_open.store(false, std::memory_order_relaxed);
    impl_->post([](HttpConnection& connection) { connection.close(); });
    return;
  }
  impl_->post([piece = std::move(piece),
               on_taken = std::move(on_taken)](HttpConnection& connection) mutable {
    connection.write(piece, std::move(on_taken));
  });
}

void HttpReply::finish() const {
  impl_->is_complete.store(true, std::memory_order_relaxed);
  impl_->post([](HttpConnection& connection) { connection.finish(); });
}

bool HttpReply::is_open() const {
  return impl_->state->is_open.load(std::memory_order_relaxed);
}

void HttpReply::on_disconnect(std::function<void()> callback) const {
  impl_->loop->post(
      [weak = impl_->connection, state = impl_->state, callback = std::move(callback)]() mutable {
        const std::shared_ptr<HttpConnection> connection = weak.lock();
        if (state->is_lost) {
          callback();
        } else if (connection != nullptr && connection->is_answering(state.get())) {
          connection->add_disconnect(std::move(callback));
        }
      });
}

}  // namespace lockstep
