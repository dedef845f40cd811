#include "node/fetch/piece_host.h"

#include <fmt/core.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/byte_text.h"
#include "base/crypto/hasher.h"
#include "base/log.h"
#include "base/threads/guarded.h"
#include "node/fetch/piece_frames.h"

namespace lockstep {
namespace {

constexpr size_t kUnsentMax = size_t{2} << 20;  // per stream: well below the connection's limit

struct Reply {
  PieceAnswer answer;
  std::string body;
};

Reply with_body(std::string body) {
  if (body.size() > kPieceBodyBytesMax) return {};
  return {{.outcome = PieceOutcome::kYes, .body_bytes = static_cast<uint32_t>(body.size())},
          std::move(body)};
}

// Finds the answers; reads the disk.
class PieceAnswers {
 public:
  PieceAnswers(LocalModels& local_models, FetchBoard& board, bool takes_copies)
      : local_models_(local_models), board_(board), takes_copies_(takes_copies) {}

  // A node that cuts files differently gets no pieces: its numbers would mean other bytes, and a
  // cut into single bytes would need a list as long as the file.
  Reply answer(const PieceAsk& ask) const {
    const bool names_pieces =
        ask.question == PieceQuestion::kPiece || ask.question == PieceQuestion::kDigest ||
        ask.question == PieceQuestion::kHoldings || ask.question == PieceQuestion::kSeal;
    if (names_pieces && ask.piece_bytes != local_models_.piece_bytes()) return {};
    switch (ask.question) {
      case PieceQuestion::kStatus:
        return status(ask);
      case PieceQuestion::kList:
        return list(ask);
      case PieceQuestion::kPiece:
      case PieceQuestion::kDigest:
        return piece(ask);
      case PieceQuestion::kState:
        return state(ask);
      case PieceQuestion::kHoldings:
        return holdings(ask);
      case PieceQuestion::kSeal:
        return seal(ask);
    }
    return {};
  }
  // Whether the answer needs no disk.
  bool is_quick(const PieceAsk& ask) const {
    return ask.question == PieceQuestion::kState ||
           (ask.question == PieceQuestion::kStatus && board_.find(ask.model));
  }
  void note(const NodeId& from, const PieceAsk& ask) const {
    if (ask.question != PieceQuestion::kStatus) return;
    if (const auto fetch = board_.find(ask.model)) fetch->note_asker(from, ask);
  }

 private:
  Reply status(const PieceAsk& ask) const {
    if (const auto fetch = board_.find(ask.model)) {
      return with_body(encode_fetch_status(fetch->own_status()));
    }
    const auto model = local_models_.find(ask.model);
    if (!model.ok() && model.error().code == ErrorCode::kTimeout) {
      return {{.outcome = PieceOutcome::kLater}, {}};
    }
    FetchStatus status;
    if (model.ok() && model.value()) {
      status.commit = model.value()->files.commit;
      status.is_whole = true;
      status.is_copy = model.value()->is_copy;
    } else if (const auto parts = local_models_.parts(ask.model)) {
      status.commit = parts->files.commit;
    } else if (local_models_.begun(ask.model, ask.commit)) {
      status.commit = ask.commit;
    }
    return with_body(encode_fetch_status(status));
  }

  Reply list(const PieceAsk& ask) const {
    const auto is_asked = [&](const ModelFiles& files) {
      return ask.commit.empty() || ask.commit == files.commit;
    };
    if (const auto fetch = board_.find(ask.model)) {
      const auto files = fetch->files();
      if (files && is_asked(*files)) return with_body(dump_model_files(*files));
      return {};
    }
    const auto model = local_models_.find(ask.model);
    if (model.ok() && model.value()) {
      return is_asked(model.value()->files) ? with_body(dump_model_files(model.value()->files))
                                            : Reply{};
    }
    const auto parts = local_models_.parts(ask.model);
    if (!parts || !is_asked(parts->files)) return {};
    return with_body(dump_model_files(parts->files));
  }

  Reply piece(const PieceAsk& ask) const {
    std::vector<std::byte> bytes;
    PieceState state = PieceState::kIdle;
    bool is_here = false;
    if (const auto fetch = board_.find(ask.model)) {
      is_here = fetch->store() ? read_stored(fetch->files().get(), fetch->store().get(), ask, bytes)
                               : read_begun(ask, bytes);
      state = fetch->state(ask.file_hash, ask.piece);
    } else if (const auto model = local_models_.find(ask.model); model.ok() && model.value()) {
      is_here = model.value()->files.commit == ask.commit &&
                local_models_.read(*model.value(), ask.file_hash, ask.piece, bytes);
    } else if (const auto parts = local_models_.parts(ask.model)) {
      is_here = read_stored(&parts->files, parts->store.get(), ask, bytes);
    } else {
      is_here = read_begun(ask, bytes);
    }
    if (!is_here) return {{.state = state}, {}};
    Reply reply;
    if (ask.question == PieceQuestion::kPiece) reply = with_body(std::string(text_of(bytes)));
    reply.answer.outcome = PieceOutcome::kYes;
    reply.answer.digest = sha256(bytes);
    return reply;
  }

  bool read_begun(const PieceAsk& ask, std::vector<std::byte>& bytes) const {
    const auto begun = local_models_.begun(ask.model, ask.commit);
    return begun && read_from(begun->files, begun->store, ask, bytes, [&](const HubFile& file) {
             return begun->store.peek(file, ask.piece, bytes);
           });
  }

  static bool read_stored(const ModelFiles* files, PieceStore* store, const PieceAsk& ask,
                          std::vector<std::byte>& bytes) {
    if (!files || !store) return false;
    return read_from(*files, *store, ask, bytes,
                     [&](const HubFile& file) { return store->read(file, ask.piece, bytes); });
  }

  template <class Read>
  static bool read_from(const ModelFiles& files, const PieceStore& store, const PieceAsk& ask,
                        std::vector<std::byte>& bytes, const Read& read) {
    if (files.commit != ask.commit) return false;
    for (const HubFile& file : files.files) {
      if (file.hash != ask.file_hash) continue;
      const PieceCut cut = store.cut(file);
      if (cut.piece_bytes != ask.piece_bytes || ask.piece >= cut.count()) return false;
      bytes.resize(cut.range(ask.piece).size());
      const auto is_here = read(file);
      return is_here.ok() && is_here.value();
    }
    return false;
  }

  Reply state(const PieceAsk& ask) const {
    const auto fetch = board_.find(ask.model);
    if (!fetch || fetch->commit() != ask.commit) return {};
    return {{.state = fetch->state(ask.file_hash, ask.piece)}, {}};
  }

  // The pieces here, fetched or being fetched.
  Reply holdings(const PieceAsk& ask) const {
    PieceHoldings holdings{.takes_copies = takes_copies_, .files = {}};
    const auto fetch = board_.find(ask.model);
    const auto parts = local_models_.parts(ask.model);
    const auto whole = local_models_.find(ask.model);
    const auto files = fetch ? fetch->files() : nullptr;
    const auto store = fetch ? fetch->store() : nullptr;
    if (files && store && files->commit == ask.commit) {
      add_stored(holdings, *files, *store);
    } else if (parts && parts->files.commit == ask.commit) {
      add_stored(holdings, parts->files, *parts->store);
    } else if (whole.ok() && whole.value() && whole.value()->files.commit == ask.commit) {
      for (const HubFile& file : whole.value()->files.files) {
        holdings.files[file.hash].assign(PieceCut{file.size, local_models_.piece_bytes()}.count(),
                                         true);
      }
      holdings.takes_copies = false;
    }
    holdings.room_bytes = takes_copies_ ? local_models_.room_for(ask.model) : 0;
    return with_body(encode_piece_holdings(holdings));
  }
  static void add_stored(PieceHoldings& holdings, const ModelFiles& files, PieceStore& store) {
    for (const HubFile& file : files.files) holdings.files[file.hash] = store.pieces_here(file);
  }

  Reply seal(const PieceAsk& ask) const {
    const auto parts = local_models_.parts(ask.model);
    if (!parts || parts->files.commit != ask.commit) return {};
    for (const HubFile& file : parts->files.files) {
      if (file.hash != ask.file_hash) continue;
      const std::vector<Digest> digests = parts->store->sealed(file);
      if (!digests.empty()) return with_body(encode_seal(digests));
    }
    return {};
  }

  LocalModels& local_models_;
  FetchBoard& board_;
  const bool takes_copies_;
};

// Threads that read the disk, and their queue: at most one question per stream.
class Readers {
 public:
  Readers() {
    for (int i = 0; i < PieceHost::kReaderCount; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Readers() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
      changed_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
  }
  void add(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    changed_.notify_one();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (!is_ending_) {
      if (jobs_.empty()) {
        changed_.wait(lock);
        continue;
      }
      const auto job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      const Status done = guarded(job);
      if (!done.ok()) log_warn("node: a request for pieces was lost: {}", done.error().message);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool is_ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

// The loop's thread, except for the readers' use of `answers`.
struct PieceHost::Impl : std::enable_shared_from_this<Impl> {
  struct Stream {
    NodeId from;
    FrameConnection connection;
    bool is_answering = false;  // a question has arrived and its answer is not fully sent
    bool has_answer = false;    // and is ready
    bool is_read = false;       // by a reader; counts for kBodiesMax
    std::string body;
    size_t sent = 0;
  };

  Impl(EventLoop& own_loop, LocalModels& local_models, FetchBoard& board, bool takes_copies)
      : loop(own_loop), answers(local_models, board, takes_copies) {}

  void on_frame(uint64_t number, std::string_view frame);
  void read(uint64_t number, const PieceAsk& ask);
  void read_next();
  void reply(uint64_t number, Reply answer);
  void send_more(uint64_t number);
  void remove(uint64_t number);

  EventLoop& loop;
  const PieceAnswers answers;
  std::map<uint64_t, Stream> streams;
  std::deque<std::pair<uint64_t, PieceAsk>> waiting;
  uint64_t next_number = 0;
  size_t bodies = 0;
  std::unique_ptr<Readers> readers = std::make_unique<Readers>();
};

PieceHost::PieceHost(EventLoop& loop, LocalModels& local_models, FetchBoard& board,
                     bool takes_copies)
    : loop_(loop), impl_(std::make_shared<Impl>(loop, local_models, board, takes_copies)) {}

PieceHost::~PieceHost() {
  std::unique_ptr<Readers> readers;
  loop_.must_run([&] {
    readers = std::move(impl_->readers);
    impl_->waiting.clear();
    for (auto& [number, stream] : std::exchange(impl_->streams, {})) stream.connection.close();
  });
  readers.reset();  // here, since this waits for them
  loop_.must_run([this] { impl_.reset(); });
}

void PieceHost::on_stream(const NodeId& from, FrameConnection connection) {
  if (impl_->streams.size() >= kStreamsMax) return connection.close();
  const uint64_t number = impl_->next_number++;
  impl_->streams.emplace(number, Impl::Stream{.from = from, .connection = connection, .body = {}});
  const std::weak_ptr<Impl> weak = impl_;
  connection.set_events({.on_frame =
                             [weak, number](const std::string& frame) {
                               if (const auto self = weak.lock()) self->on_frame(number, frame);
                             },
                         .on_close =
                             [weak, number](const Error&) {
                               if (const auto self = weak.lock()) self->remove(number);
                             },
                         .on_drained =
                             [weak, number] {
                               if (const auto self = weak.lock()) self->send_more(number);
                             }});
}

void PieceHost::Impl::on_frame(uint64_t number, std::string_view frame) {
  const auto found = streams.find(number);
  if (found == streams.end()) return;
  const auto ask = decode_piece_ask(frame);
  if (!ask.ok() || found->second.is_answering) {
    log_warn("node: the piece stream of node {} is closed: {}", found->second.from.short_text(),
             ask.ok() ? "it sent a request before the previous answer" : ask.error().message);
    return remove(number);
  }
  found->second.is_answering = true;
  answers.note(found->second.from, ask.value());
  if (answers.is_quick(ask.value())) return reply(number, answers.answer(ask.value()));
  waiting.emplace_back(number, ask.value());
  read_next();
}

void PieceHost::Impl::read_next() {
  while (!waiting.empty() && bodies < kBodiesMax) {
    const auto [number, ask] = std::move(waiting.front());
    waiting.pop_front();
    const auto found = streams.find(number);
    if (found == streams.end()) continue;
    found->second.is_read = true;
    ++bodies;
    read(number, ask);
  }
}

void PieceHost::Impl::read(uint64_t number, const PieceAsk& ask) {
  if (!readers) return;
  readers->add([this, weak = weak_from_this(), number, ask] {
    auto found = guarded([&]() -> Result<Reply> { return answers.answer(ask); });
    if (!found.ok()) log_warn("node: a request for pieces failed: {}", found.error().message);
    // The readers end before this object.
    loop.post([weak, number, answer = found.ok() ? std::move(found.value()) : Reply{}]() mutable {
      if (const auto self = weak.lock()) self->reply(number, std::move(answer));
    });
  });
}

void PieceHost::Impl::reply(uint64_t number, Reply answer) {
  const auto found = streams.find(number);
  if (found == streams.end()) return;
  Stream& stream = found->second;
  stream.body = std::move(answer.body);
  stream.sent = 0;
  stream.has_answer = true;
  stream.connection.send(encode_piece_answer(answer.answer));
  send_more(number);
}

void PieceHost::Impl::send_more(uint64_t number) {
  const auto found = streams.find(number);
  if (found == streams.end() || !found->second.has_answer) return;
  Stream& stream = found->second;
  while (stream.sent < stream.body.size() && stream.connection.unsent_bytes() < kUnsentMax) {
    const auto chunk = std::string_view(stream.body).substr(stream.sent, kPieceChunkBytes);
    stream.sent += chunk.size();
    stream.connection.send(encode_piece_chunk(chunk));
  }
  if (stream.sent < stream.body.size()) return;
  stream.is_answering = false;
  stream.has_answer = false;
  stream.body = {};
  if (std::exchange(stream.is_read, false)) --bodies;
  read_next();
}

void PieceHost::Impl::remove(uint64_t number) {
  const auto found = streams.find(number);
  if (found == streams.end()) return;
  if (found->second.is_read) --bodies;
  found->second.connection.close();
  streams.erase(found);
  read_next();
}

}  // namespace lockstep
