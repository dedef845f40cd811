#include "server/events/event_hub.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "server/request/sse.h"

namespace lockstep {
namespace {

constexpr std::string_view kComment = ":\n\n";
// Versions before the current one whose changes are kept as text. Most streams have the last one.
constexpr size_t kChangesMax = 16;

void append_member(std::string& out, std::string_view name, std::string_view text) {
  out += out.empty() ? '{' : ',';
  append_json_string(out, name);
  out += ':';
  out += text;
}

ApiError no_room() {
  return {503, "this node has its maximum of event streams, try again later", "",
          "too_many_streams"};
}

}  // namespace

void EventHub::set_on_added(std::function<void()> on_added) {
  const std::lock_guard lock(mutex_);
  on_added_ = std::move(on_added);
}

ApiResult<Ok> EventHub::add(Client client) {
  std::function<void()> told;
  const HttpReply reply = client.reply;
  const bool has_control = client.permission().has_control;
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return ApiError{503, "this server is about to stop", "", "stopping"};
    const size_t most = kStreamsMax - (client.is_from_this_machine ? 0 : kStreamsReserved);
    if (streams_.size() >= most) return no_room();
    number = next_stream_++;
    streams_.emplace(
        number,
        Stream{.client = std::move(client), .has_control = has_control, .written = Clock::now()});
    // Its head goes out now, so that the client knows at once that it is connected.
    reply.start(200, kSseContentType, {{"Cache-Control", "no-store"}});
    told = on_added_;
  }
  reply.on_disconnect([weak = weak_from_this(), number] {
    if (const auto self = weak.lock()) self->remove(number);
  });
  if (told) told();
  return Ok{};
}

void EventHub::remove(uint64_t number) {
  const std::lock_guard lock(mutex_);
  streams_.erase(number);
}

void EventHub::publish(EventMembers members) {
  const std::lock_guard lock(mutex_);
  const uint64_t next = version_ + 1;
  bool is_changed = version_ == 0;
  for (auto& [name, member] : members_) {
    if (member.is_gone || members.contains(name)) continue;
    member = {.value = {.text = "null", .key = {}, .is_for_control = member.value.is_for_control},
              .version = next,
              .is_gone = true};
    is_changed = true;
  }
  for (auto& [name, value] : members) {
    Member& member = members_[name];
    if (member.version == 0 || member.is_gone || member.value.key != value.key) {
      member.version = next;
      is_changed = true;
    }
    member.is_gone = false;
    member.value = std::move(value);
  }
  snapshots_.clear();
  if (!is_changed) return;
  version_ = next;
  changes_.clear();
}

void EventHub::happened(int64_t at_ms, std::string_view kind, std::string_view sentence) {
  const std::lock_guard lock(mutex_);
  happened_.push_back(
      {++last_happened_, JsonObject{{"at_ms", at_ms}, {"kind", kind}, {"sentence", sentence}}});
  if (happened_.size() > kHappenedMax) happened_.pop_front();
  snapshots_.clear();
}

JsonArray EventHub::happened() const {
  const std::lock_guard lock(mutex_);
  return happened_list();
}

JsonArray EventHub::happened_list() const {
  JsonArray list;
  for (const Happened& one : happened_) list.push_back(one.json);
  return list;
}

void EventHub::set_meters(std::string json) {
  const std::lock_guard lock(mutex_);
  meters_ = sse_event("meters", json);
  ++meters_number_;
}

// Outside the lock: a permission asks for keys and sessions, which have locks of their own.
void EventHub::check_permissions() {
  std::vector<std::pair<uint64_t, std::function<Permission()>>> asked;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, stream] : streams_) {
      asked.emplace_back(number, stream.client.permission);
    }
  }
  for (const auto& [number, permission] : asked) {
    const Permission now = permission();
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(number);
    if (found == streams_.end()) continue;
    Stream& stream = found->second;
    if (!now.may_look) {
      stream.client.reply.finish();
      streams_.erase(found);
    } else if (stream.has_control != now.has_control) {
      stream.has_control = now.has_control;
      stream.has_snapshot = false;  // the next one has, or lacks, what is for control
    }
  }
}

void EventHub::send(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (version_ == 0) return;
  for (auto& [number, stream] : streams_) {
    if (stream.is_writing) continue;
    std::string piece = next_piece(stream);
    if (!piece.empty()) write(number, stream, std::move(piece), now);
  }
}

std::string EventHub::next_piece(Stream& stream) {
  std::string piece;
  if (!std::exchange(stream.has_snapshot, true)) {
    piece = snapshot(stream.has_control);
    stream.happened = last_happened_;
  } else if (stream.version < version_) {
    piece = change(stream.version, stream.has_control);
  }
  stream.version = version_;
  for (const Happened& one : happened_) {
    if (one.number > stream.happened) piece += sse_event("happened", dump_json(one.json));
  }
  stream.happened = last_happened_;
  if (stream.meters < meters_number_) piece += meters_;
  stream.meters = meters_number_;
  return piece;
}

void EventHub::write(uint64_t number, Stream& stream, std::string piece, Clock::time_point now) {
  stream.is_writing = true;
  stream.written = now;
  stream.client.reply.write(std::move(piece), [weak = weak_from_this(), number] {
    if (const auto self = weak.lock()) self->on_taken(number);
  });
}

void EventHub::on_taken(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(number);
  if (found != streams_.end()) found->second.is_writing = false;
}

// Clients and proxies give up a stream that says nothing, as when the publisher waits for a disk.
void EventHub::on_tick(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  for (auto& [number, stream] : streams_) {
    if (stream.is_writing || now - stream.written < silence_max_) continue;
    write(number, stream, std::string(kComment), now);
  }
}

const std::string& EventHub::snapshot(bool has_control) {
  std::string& text = snapshots_[has_control];
  if (!text.empty()) return text;
  std::string members;
  append_member(members, "control", has_control ? "true" : "false");
  for (const auto& [name, member] : members_) {
    const bool is_hidden = member.value.is_for_control && !has_control;
    if (!member.is_gone && !is_hidden) append_member(members, name, member.value.text);
  }
  append_member(members, "happened", dump_json(happened_list()));
  text = sse_event("snapshot", members + "}");
  return text;
}

const std::string& EventHub::change(uint64_t version, bool has_control) {
  if (changes_.size() > kChangesMax) changes_.clear();
  const auto [found, is_new] = changes_.try_emplace({version, has_control});
  if (is_new) found->second = change_text(version, has_control);
  return found->second;
}

// Empty if nothing has changed that this caller may see.
std::string EventHub::change_text(uint64_t version, bool has_control) const {
  std::string members;
  for (const auto& [name, member] : members_) {
    if (member.version <= version || (member.value.is_for_control && !has_control)) continue;
    append_member(members, name, member.value.text);
  }
  return members.empty() ? "" : sse_event("change", members + "}");
}

size_t EventHub::stream_count() const {
  const std::lock_guard lock(mutex_);
  return streams_.size();
}

void EventHub::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  for (const auto& [number, stream] : streams_) stream.client.reply.finish();
  streams_.clear();
}

}  // namespace lockstep
