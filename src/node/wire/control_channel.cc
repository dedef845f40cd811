#include "node/wire/control_channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace lockstep {
namespace {

constexpr size_t kHeaderBytes = sizeof(uint32_t);
constexpr size_t kChannelReadBytes = size_t{64} << 10;

// Drops used bytes once they outweigh the rest, so that each byte moves about once at most.
void drop_used(std::string& buffer, size_t& begin) {
  if (begin == buffer.size()) {
    buffer.clear();
    // A burst of logits must not hold its memory for the life of the channel.
    if (buffer.capacity() > 4 * kChannelReadBytes) buffer.shrink_to_fit();
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

// Ancillary data of one sendmsg() or recvmsg().
union FdSpace {
  cmsghdr header;  // for the alignment
  char bytes[CMSG_SPACE(kControlFdsMax * sizeof(int))];
};

// Like send(), with descriptors.
ssize_t send_with_fds(int socket, std::string_view bytes, const std::vector<UniqueFd>& fds,
                      int flags) {
  iovec data{const_cast<char*>(bytes.data()), bytes.size()};
  FdSpace space{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = space.bytes;
  message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
  for (size_t i = 0; i < fds.size(); ++i) {
    const int fd = fds[i].get();
    std::memcpy(CMSG_DATA(header) + i * sizeof(int), &fd, sizeof(int));
  }
  return ::sendmsg(socket, &message, flags);
}

void take_passed(msghdr& message, std::vector<UniqueFd>& fds) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      fcntl(fd, F_SETFD, FD_CLOEXEC);
      fds.emplace_back(fd);
    }
  }
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
  buffer_.resize(old_size + kChannelReadBytes);
  iovec data{buffer_.data() + old_size, kChannelReadBytes};
  FdSpace space;
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = space.bytes;
  message.msg_controllen = sizeof(space.bytes);
#ifdef MSG_CMSG_CLOEXEC
  constexpr int kFlags = MSG_DONTWAIT | MSG_CMSG_CLOEXEC;
#else
  constexpr int kFlags = MSG_DONTWAIT;
#endif
  const ssize_t got = ::recvmsg(fd, &message, kFlags);
  const int error = errno;
  buffer_.resize(old_size + (got > 0 ? static_cast<size_t>(got) : 0));
  if (got > 0) take_passed(message, fds_);
  if (got > 0 && ((message.msg_flags & MSG_CTRUNC) != 0 || fds_.size() > kControlFdsMax)) {
    return Error{
        ErrorCode::kCorrupt,
        fmt::format(
            "a control channel carries more than {} descriptors, or this process cannot open more",
            kControlFdsMax)};
  }
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

Status FrameWriter::push(uint8_t type, std::string_view payload, std::vector<UniqueFd> fds) {
  LOCKSTEP_CHECK(fds.size() <= kControlFdsMax);
  if (payload.size() + 1 > kControlFrameBytesMax) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("a message of {} bytes is too long for a worker", payload.size())};
  }
  if (buffer_.size() - begin_ + payload.size() > kControlQueueBytesMax) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("{} bytes are waiting to be read", buffer_.size() - begin_)};
  }
  if (!fds.empty()) passed_.push_back({pushed_, std::move(fds)});
  pushed_ += kHeaderBytes + 1 + payload.size();
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
    const uint64_t position = pushed_ - (buffer_.size() - begin_);
    std::string_view bytes = std::string_view(buffer_).substr(begin_);
    const bool has_fds = !passed_.empty() && passed_.front().position == position;
    // Up to the next bytes with descriptors, which must begin their own call.
    const size_t next = has_fds ? 1 : 0;
    if (passed_.size() > next) bytes = bytes.substr(0, passed_[next].position - position);
    const ssize_t sent = has_fds ? send_with_fds(fd, bytes, passed_.front().fds, kFlags)
                                 : ::send(fd, bytes.data(), bytes.size(), kFlags);
    if (sent > 0) {
      begin_ += static_cast<size_t>(sent);
      if (has_fds) passed_.pop_front();
    } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) {
      break;
    } else if (errno != EINTR) {
      return closed(fmt::format(": {}", strerror(errno)));
    }
  }
  drop_used(buffer_, begin_);
  return Ok{};
}

Status ControlChannel::send(uint8_t type, std::string_view payload, std::vector<UniqueFd> fds) {
  if (!is_open()) return closed("");
  TRY(writer_.push(type, payload, std::move(fds)));
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
  const int type = SOCK_STREAM | SOCK_CLOEXEC;  // atomically: another thread may start a process
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
