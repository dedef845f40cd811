#include "hub/http/download.h"

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/threads/guarded.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kChecksMax = 3;  // of one file: after the disk, the other machines, all pieces again
constexpr std::chrono::milliseconds kAskAgain{20};

struct Piece {
  size_t file = 0;
  uint32_t index = 0;
};

struct Job {
  const HubFile* file = nullptr;
  std::shared_ptr<RangeFile> parts;  // null once it is whole
  std::vector<Digest> sealed;        // the pieces' digests, if known
  uint32_t missing = 0;              // wanted pieces
  bool is_whole_wanted = true;
  int checks = 0;
  bool is_from_hub_alone = false;         // since the machines' pieces were not the file
  std::map<uint32_t, Digest> rejected{};  // of pieces to be fetched again
};

class Downloader {
 public:
  Downloader(PieceStore& store, std::span<const HubFile> files, const MakePieceSource& make_source,
             const DownloadOptions& options)
      : store_(store), make_source_(make_source), options_(options), jobs_(files.size()) {
    for (size_t i = 0; i < files.size(); ++i) jobs_[i].file = &files[i];
  }

  Status run();

 private:
  Status prepare();
  void work();
  Status work_on(PieceSource& source, Piece piece, std::vector<std::byte>& buffer);
  Status check(PieceSource& source, size_t index);
  Result<std::vector<uint32_t>> wrong_pieces(PieceSource& source, Job& job);
  std::optional<Piece> next();
  void put_back(Piece piece);
  void stop(const Error& error);
  bool is_over() const;
  bool has_cancelled() const {
    return options_.cancelled && options_.cancelled->load(std::memory_order_relaxed);
  }

  PieceStore& store_;
  const MakePieceSource& make_source_;
  const DownloadOptions& options_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<Job> jobs_;
  std::deque<Piece> queue_;
  size_t open_jobs_ = 0;
  DownloadProgress progress_;
  Clock::time_point last_arrival_ = Clock::now();
  std::optional<Error> error_;
};

Status Downloader::run() {
  TRY(prepare());
  std::vector<std::thread> threads;
  const int connections = std::clamp(options_.connections, 1, kConnectionsMax);
  for (int i = 0; i < connections; ++i) {
    const Status started = guarded([&] {
      threads.emplace_back([this] {
        const Status done = guarded([this] { work(); });
        if (!done.ok()) stop(done.error());
      });
    });
    if (!started.ok() && threads.empty()) return started;  // else there are fewer threads
  }
  {
    std::unique_lock lock(mutex_);
    while (!is_over()) {
      changed_.wait_for(lock, options_.report_every);
      if (has_cancelled() && !error_)
        error_ = Error{ErrorCode::kCancelled, "the download was stopped"};
      if (!options_.on_progress || is_over()) continue;
      const DownloadProgress shown = progress_;
      lock.unlock();
      options_.on_progress(shown);
      lock.lock();
    }
  }
  changed_.notify_all();
  for (std::thread& thread : threads) thread.join();
  if (options_.on_progress) options_.on_progress(progress_);
  return error_ ? Status(*error_) : Status(Ok{});
}

bool Downloader::is_over() const {
  return error_ || open_jobs_ == 0;
}

// Examines what is here. Files whose pieces all arrived in an earlier run are checked here.
Status Downloader::prepare() {
  progress_.files = jobs_.size();
  std::vector<size_t> complete;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    Job& job = jobs_[i];
    const PieceCut cut = store_.cut(*job.file);
    const bool is_whole = store_.is_whole(*job.file);
    if (is_whole) {
      store_.remove_leftovers(*job.file);
    } else {
      job.parts = TRY(store_.partial(*job.file));
      job.sealed = store_.sealed(*job.file);
    }
    job.is_whole_wanted = !options_.stays_in_pieces;
    for (uint32_t piece = 0; piece < cut.count(); ++piece) {
      if (options_.wants && !options_.wants(*job.file, piece)) {
        job.is_whole_wanted = false;
        continue;
      }
      progress_.bytes_wanted += cut.range(piece).size();
      if (is_whole || job.parts->has(piece)) {
        progress_.bytes_there += cut.range(piece).size();
      } else {
        ++job.missing;
        queue_.push_back({i, piece});
      }
    }
    if (is_whole || (job.missing == 0 && !job.is_whole_wanted)) {
      ++progress_.files_there;
    } else {
      ++open_jobs_;
      if (job.missing == 0) complete.push_back(i);
    }
  }
  const auto source = make_source_();
  std::stable_partition(queue_.begin(), queue_.end(), [&](Piece piece) {
    return source->is_own(*jobs_[piece.file].file, piece.index);
  });
  for (const size_t i : complete) TRY(check(*source, i));
  return Ok{};
}

std::optional<Piece> Downloader::next() {
  std::unique_lock lock(mutex_);
  while (queue_.empty() && !is_over()) changed_.wait_for(lock, options_.report_every);
  if (is_over()) return std::nullopt;
  const Piece piece = queue_.front();
  queue_.pop_front();
  return piece;
}

// Moves a piece that is not available yet to the end of the queue.
void Downloader::put_back(Piece piece) {
  std::unique_lock lock(mutex_);
  queue_.push_back(piece);
  if (Clock::now() - last_arrival_ > options_.patience) {
    if (!error_) {
      error_ = Error{ErrorCode::kTimeout,
                     fmt::format("no data of {} has arrived from any machine for {} s",
                                 jobs_[piece.file].file->name, options_.patience.count())};
    }
    return;
  }
  changed_.wait_for(lock, kAskAgain);
}

void Downloader::stop(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = error;  // later errors are consequences of the first
  if (options_.cancelled) options_.cancelled->store(true, std::memory_order_relaxed);
  changed_.notify_all();
}

void Downloader::work() {
  const auto source = make_source_();
  std::vector<std::byte> buffer;
  while (const auto piece = next()) {
    const Status status = work_on(*source, *piece, buffer);
    if (!status.ok()) return stop(status.error());
  }
}

Status Downloader::work_on(PieceSource& source, Piece piece, std::vector<std::byte>& buffer) {
  Job& job = jobs_[piece.file];
  const ByteRange range = store_.cut(*job.file).range(piece.index);
  buffer.resize(range.size());
  PieceRequest request{.file = *job.file, .piece = piece.index, .range = range};
  if (!job.sealed.empty()) request.expected = job.sealed[piece.index];
  {
    const std::lock_guard lock(mutex_);
    request.is_from_hub_alone = job.is_from_hub_alone;
    const auto rejected = job.rejected.find(piece.index);
    if (rejected != job.rejected.end()) request.rejected = rejected->second;
  }
  bool has_come = TRY(source.fetch(request, buffer));
  // Known to be wrong: its sender or another machine may have the right one later.
  if (has_come && request.expected && sha256(buffer) != *request.expected) has_come = false;
  if (!has_come) {
    put_back(piece);
    return Ok{};
  }
  TRY(job.parts->write(piece.index, buffer));
  bool is_last = false;
  {
    const std::lock_guard lock(mutex_);
    progress_.bytes_there += range.size();
    progress_.file = job.file->name;
    last_arrival_ = Clock::now();
    is_last = --job.missing == 0;
  }
  return is_last ? check(source, piece.file) : Status(Ok{});
}

// All wanted pieces of a file are here.
Status Downloader::check(PieceSource& source, size_t index) {
  Job& job = jobs_[index];
  if (job.is_whole_wanted) {
    {
      const std::lock_guard lock(mutex_);
      progress_.file = job.file->name;
      progress_.is_checking = true;
    }
    if (TRY(store_.is_hash_right(*job.file))) {
      TRY(store_.finish(*job.file));
    } else {
      const std::vector<uint32_t> wrong = TRY(wrong_pieces(source, job));
      for (const uint32_t piece : wrong) TRY(job.parts->forget(piece));
      const std::lock_guard lock(mutex_);
      progress_.is_checking = false;
      job.missing = static_cast<uint32_t>(wrong.size());
      for (const uint32_t piece : wrong) {
        progress_.bytes_there -= store_.cut(*job.file).range(piece).size();
        queue_.push_front({index, piece});
      }
      changed_.notify_all();
      return Ok{};
    }
  }
  const std::lock_guard lock(mutex_);
  progress_.is_checking = false;
  last_arrival_ = Clock::now();
  ++progress_.files_there;
  --open_jobs_;
  changed_.notify_all();
  return Ok{};
}

Result<std::vector<uint32_t>> Downloader::wrong_pieces(PieceSource& source, Job& job) {
  const PieceCut cut = store_.cut(*job.file);
  if (++job.checks >= kChecksMax || cut.count() == 0) {
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("{} is not the file that the hub lists, even after it was fetched again: its "
                    "{} differs; the hub or something on the way damages it",
                    job.file->name, job.file->hash_kind == HashKind::kSha256 ? "SHA-256" : "hash")};
  }
  std::vector<uint32_t> wrong;
  std::vector<Digest> digests(cut.count());
  std::vector<std::byte> bytes(cut.piece_bytes);
  for (uint32_t piece = 0; piece < cut.count(); ++piece) {
    const auto digest = job.parts->digest(piece);
    const auto part = std::span(bytes).first(cut.range(piece).size());
    if (!digest || !TRY(job.parts->read(piece, part))) wrong.push_back(piece);
    digests[piece] = digest.value_or(Digest{});
  }
  if (!wrong.empty()) return wrong;
  {
    const std::lock_guard lock(mutex_);
    job.is_from_hub_alone = true;
  }
  if (job.checks == 1) wrong = source.suspects(*job.file, digests);
  {
    const std::lock_guard lock(mutex_);
    for (const uint32_t piece : wrong) job.rejected[piece] = digests[piece];
  }
  if (!wrong.empty()) return wrong;
  if (!source.has_origin()) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} is damaged on the machines that have it: it is not the file that "
                             "is listed",
                             job.file->name)};
  }
  ++job.checks;  // fetching all again is the last resort
  const std::lock_guard lock(mutex_);
  job.rejected.clear();
  for (uint32_t piece = 0; piece < cut.count(); ++piece) wrong.push_back(piece);
  return wrong;
}

}  // namespace

Status download(PieceStore& store, std::span<const HubFile> files,
                const MakePieceSource& make_source, const DownloadOptions& options) {
  return Downloader(store, files, make_source, options).run();
}

}  // namespace lockstep
