#include "node/control_channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace lockstep {
namespace {

constexpr size_t kHeaderBytes = sizeof(uint32_t);
constexpr size_t kReadBytes = size_t{64} << 10;

// Used-up bytes are dropped once they outweigh the rest, so that each byte moves at most once or
// so.
void drop_used(std::string& buffer, size_t& begin) {
  if (begin == buffer.size()) {
    buffer.clear();
    // A burst of logits must not hold its memory for the life of the channel.
    if (buffer.capacity() > 4 * kReadBytes) buffer.shrink_to_fit();
  } else if (begin > buffer.size() / 2) {
    buffer.erase(0, begin);
  } else {
    return;
  }
  begin = 0;
}

Error closed(std::string_view why) {
  return Error{ErrorCode::kPeerLost, fmt::format("the control channel is closed{}", why)};
}

void set_options(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
#ifdef SO_NOSIGPIPE
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
#endif
}

}  // namespace

Result<bool> FrameReader::fill(int fd) {
  drop_used(buffer_, begin_);
  const size_t old_size = buffer_.size();
  buffer_.resize(old_size + kReadBytes);
  const ssize_t got = ::recv(fd, buffer_.data() + old_size, kReadBytes, MSG_DONTWAIT);
  const int error = errno;
  buffer_.resize(old_size + (got > 0 ? static_cast<size_t>(got) : 0));
  if (got > 0) return true;
  if (got == 0) return closed("");
  if (error == EAGAIN || error == EWOULDBLOCK || error == EINTR) return false;
  return closed(fmt::format(": {}", strerror(error)));
}

Result<std::optional<ControlFrame>> FrameReader::next() {
  const size_t available = buffer_.size() - begin_;
  if (available < kHeaderBytes) return std::optional<ControlFrame>();
  uint32_t length = 0;
  std::memcpy(&length, buffer_.data() + begin_, kHeaderBytes);
  if (length == 0 || length > kControlFrameBytesMax) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("a control frame claims {} bytes; 1 to {} are possible", length,
                             kControlFrameBytesMax)};
  }
  if (available < kHeaderBytes + length) return std::optional<ControlFrame>();
  const char* body = buffer_.data() + begin_ + kHeaderBytes;
  ControlFrame frame{static_cast<uint8_t>(*body), std::string(body + 1, length - 1)};
  begin_ += kHeaderBytes + length;
  return std::optional<ControlFrame>(std::move(frame));
}

Status FrameWriter::push(uint8_t type, std::string_view payload) {
  if (payload.size() + 1 > kControlFrameBytesMax) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("a message of {} bytes is too long for a worker", payload.size())};
  }
  if (buffer_.size() - begin_ + payload.size() > kControlQueueBytesMax) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("{} bytes wait to be read", buffer_.size() - begin_)};
  }
  const uint32_t length = static_cast<uint32_t>(payload.size() + 1);
  buffer_.append(reinterpret_cast<const char*>(&length), kHeaderBytes);
  buffer_.push_back(static_cast<char>(type));
  buffer_.append(payload);
  return Ok{};
}

Status FrameWriter::flush(int fd) {
#ifdef MSG_NOSIGNAL
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
#else
  constexpr int kFlags = MSG_DONTWAIT;  // SO_NOSIGPIPE is set instead
#endif
  while (begin_ < buffer_.size()) {
    const ssize_t sent = ::send(fd, buffer_.data() + begin_, buffer_.size() - begin_, kFlags);
    if (sent > 0) {
      begin_ += static_cast<size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) {
      break;
    } else if (errno != EINTR) {
      return closed(fmt::format(": {}", strerror(errno)));
    }
  }
  drop_used(buffer_, begin_);
  return Ok{};
}

Status ControlChannel::send(uint8_t type, std::string_view payload) {
  if (!is_open()) return closed("");
  TRY(writer_.push(type, payload));
  return flush();
}

Status ControlChannel::discard() {
  reader_ = FrameReader();
  while (TRY(reader_.fill(fd_.get()))) reader_ = FrameReader();
  return Ok{};
}

Result<std::pair<UniqueFd, UniqueFd>> control_socket_pair() {
  int fds[2] = {-1, -1};
#ifdef SOCK_CLOEXEC
  const int type = SOCK_STREAM | SOCK_CLOEXEC;  // at once: another thread may start a process
#else
  const int type = SOCK_STREAM;
#endif
  if (::socketpair(AF_UNIX, type, 0, fds) != 0) {
    return Error{ErrorCode::kInternal,
                 fmt::format("cannot make a control channel: {}", strerror(errno))};
  }
  for (int fd : fds) set_options(fd);
  return std::pair<UniqueFd, UniqueFd>(UniqueFd(fds[0]), UniqueFd(fds[1]));
}

}  // namespace lockstep
