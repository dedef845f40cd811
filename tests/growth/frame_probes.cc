// Input from other machines: HTTP, events of backends, messages and frames of nodes, steps of
// ranks.
#include <fmt/format.h>

#include "base/hex.h"
#include "cluster/brain/messages.h"
#include "cluster/discovery/beacon_message.h"
#include "cluster/discovery/greeting.h"
#include "cluster/join/join_frames.h"
#include "engine/schedule/step.h"
#include "growth/probe.h"
#include "net/http/http_head.h"
#include "net/http/http_request_parser.h"
#include "net/http/http_target.h"
#include "node/fetch/piece_frames.h"
#include "node/requests/request_frames.h"
#include "node/wire/messages.h"
#include "node/wire/status_message.h"
#include "router/request_key.h"
#include "router/sse_events.h"

namespace lockstep {
namespace {

bool reads_http(const std::string& bytes, size_t piece) {
  HttpRequestParser parser({.bytes_max = size_t{1} << 20, .fields_max = size_t{1} << 20});
  std::string unread;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    unread += bytes.substr(at, piece);
    unread.erase(0, parser.feed(unread));
    if (parser.state() == HttpRequestParser::State::kHead) {
      parser.accept(size_t{64} << 20);
      unread.erase(0, parser.feed(unread));
    }
  }
  return parser.state() == HttpRequestParser::State::kDone;
}

std::string chunked(size_t count) {
  return "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" +
         repeated("3\r\nabc\r\n", count) + "0\r\n\r\n";
}

Probes http() {
  const auto whole = [](const std::string& bytes) { return reads_http(bytes, size_t{1} << 30); };
  const auto in_packets = [](const std::string& bytes) { return reads_http(bytes, 1400); };
  const auto headers = [](size_t n) {
    return "GET / HTTP/1.1\r\nHost: a\r\n" +
           listed(n, "", [](size_t i) { return fmt::format("X-{}: b\r\n", i); }) + "\r\n";
  };
  return {
      text_probe("http: headers", 800, headers, whole),
      text_probe(
          "http: headers of one name", 800,
          [](size_t n) {
            return "GET / HTTP/1.1\r\nHost: a\r\n" + repeated("Accept: b\r\n", n) + "\r\n";
          },
          whole),
      text_probe("http: headers in packets", 800, headers, in_packets),
      text_probe(
          "http: a long header", 30'000,
          [](size_t n) {
            return "GET / HTTP/1.1\r\nHost: a\r\nX: " + repeated("b", n) + "\r\n\r\n";
          },
          in_packets),
      text_probe("http: small chunks", 2000, chunked, whole),
      text_probe("http: small chunks in packets", 2000, chunked, in_packets),
      text_probe(
          "http: a body in packets", 100'000,
          [](size_t n) {
            return fmt::format("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", n) +
                   repeated("b", n);
          },
          in_packets),
      text_probe(
          "http: a path", 20'000, [](size_t n) { return "/" + repeated("a/../%41/", n / 8); },
          [](const std::string& target) { return parse_target(target).ok(); }),
      text_probe(
          "http: chunks written", 3000, [](size_t n) { return repeated("ab", n); },
          [](const std::string& text) {
            std::string out;
            for (const char& byte : text) append_chunk(out, std::string_view(&byte, 1));
            return !out.empty();
          }),
  };
}

bool reads_events(const std::string& bytes, size_t piece) {
  SseEvents events;
  size_t told = 0;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    told += events.take(std::string_view(bytes).substr(at, piece)).size();
  }
  return told + events.take_rest().size() == bytes.size();
}

Probes router() {
  const auto byte_by_byte = [](const std::string& bytes) { return reads_events(bytes, 1); };
  const auto key = [](const char* path) {
    return [path](const std::string& body) {
      return read_request_key(path, parse_json(body).value()).prefix.has_value();
    };
  };
  return {
      text_probe(
          "events: many, in packets", 3000,
          [](size_t n) { return repeated("data: {\"a\":1}\n\n", n); },
          [](const std::string& bytes) { return reads_events(bytes, 1400); }),
      text_probe(
          "events: many at once", 3000, [](size_t n) { return repeated("data: {\"a\":1}\n\n", n); },
          [](const std::string& bytes) { return reads_events(bytes, size_t{1} << 30); }),
      text_probe(
          "events: a long one, byte by byte", 3000,
          [](size_t n) { return "data: " + repeated("a", n) + "\n\n"; }, byte_by_byte),
      text_probe(
          "events: lines that end none", 3000,
          [](size_t n) { return repeated("a\r\n", n) + "\r\n"; }, byte_by_byte),
      text_probe(
          "route: messages", 1000,
          [](size_t n) {
            return R"({"model":"m","messages":[)" +
                   listed(n, ",",
                          [](size_t i) {
                            return fmt::format(R"({{"role":"user","content":"{}"}})", i);
                          }) +
                   "]}";
          },
          key("/v1/chat/completions")),
      text_probe(
          "route: token ids", 2000,
          [](size_t n) { return R"({"model":"m","prompt":[)" + repeated("1,", n) + "1]}"; },
          key("/v1/completions")),
  };
}

std::string a_node(size_t i) {
  return fmt::format("{:064x}", i);
}

Reading beacons(size_t count) {
  const KeyPair key = KeyPair::generate().value();
  const BeaconMessage message{
      .key = key.public_key(), .control_port = 8601, .name = "node", .version = "1"};
  return [count, datagram = encode_beacon(message, key, Digest{}).value()] {
    size_t found = 0;
    for (size_t i = 0; i < count; ++i) found += parse_beacon(datagram) ? 1 : 0;
    return found == count;
  };
}

Probes cluster() {
  const auto decodes = [](const std::string& text) { return decode_cluster_message(text).ok(); };
  const auto heartbeat = [](size_t n) {
    NodeHeartbeat message;
    message.name = "node";
    for (size_t i = 0; i < n; ++i) {
      const auto id = NodeId::parse(a_node(i));
      if (id) message.hears.push_back(*id);
    }
    return encode_cluster_message(message);
  };
  return {
      text_probe("cluster: a heartbeat of nodes", 16, heartbeat, decodes),
      text_probe(
          "cluster: a summary", 250,
          [](size_t n) {
            DesiredSummary summary;
            for (size_t i = 0; i < n; ++i) summary.stamps.push_back({fmt::format("m{}", i), {}});
            return encode_cluster_message(summary);
          },
          decodes),
      text_probe(
          "cluster: unknown fields", 2000,
          [heartbeat](size_t n) {
            const std::string known = heartbeat(0);
            return known.substr(0, known.size() - 1) + "," + numbered(n, R"("x@":1)") + "}";
          },
          decodes),
      text_probe(
          "cluster: unknown fields of a join", 2000,
          [](size_t n) {
            return first_frame_prefix(FirstFrame::kJoin) +
                   R"({"name":"a","version":"1","oldest":1,"newest":1,"with":"pin",)" +
                   numbered(n, R"("x@":1)") + "}";
          },
          [](const std::string& text) { return parse_join_request(text).ok(); }),
      {"cluster: beacons", 200, beacons},
  };
}

bool reads_frames(const std::vector<std::string>& frames) {
  RequestFrameReader reader;
  for (const std::string& frame : frames) {
    const auto message = reader.take(frame);
    if (!message.ok()) return false;
    if (message.value()) return true;
  }
  return false;
}

GenerateRequest long_prompt(size_t tokens) {
  GenerateRequest request;
  request.prompt.assign(tokens, 7);
  request.dry_breakers.assign(tokens, 7);  // these are JSON
  return request;
}

Probes node() {
  return {
      {"frames: a message of small ones", 3000,
       [](size_t n) -> Reading {
         // The second bit of the first byte says that more follows; a small frame for each byte.
         const auto sample =
             request_frames(RequestMessage::kSubmit, std::string(kRequestFrameBytesMax + 10, 'a'));
         const char more = sample.value()[0][0];
         const char last = sample.value()[1][0];
         std::vector<std::string> frames(n, std::string{more, 'a'});
         frames.push_back({last, 'a'});
         return [frames] { return reads_frames(frames); };
       }},
      text_probe(
          "frames: a request", 5000, [](size_t n) { return encode_request(7, long_prompt(n)); },
          [](const std::string& text) { return decode_request(text).ok(); }),
      text_probe(
          "frames: the ports of ranks", 3000,
          [](size_t n) {
            return encode_listening(std::vector<RankListening>(n, {8600, {"10.9.0.1"}}));
          },
          [](const std::string& text) { return decode_listening(text).ok(); }),
      text_probe(
          "frames: a status", 16,
          [](size_t n) {
            ModelStatus status;
            for (size_t i = 0; i < n; ++i) status.ranks.push_back({.rank = static_cast<int>(i)});
            return encode_status(status);
          },
          [](const std::string& text) { return decode_status(text).ok(); }),
      text_probe(
          "pieces: holdings of files", 300,
          [](size_t n) {
            PieceHoldings holdings;
            for (size_t i = 0; i < n; ++i) holdings.files[a_node(i)].assign(20, true);
            return encode_piece_holdings(holdings);
          },
          [](const std::string& text) { return decode_piece_holdings(text).ok(); }),
      text_probe(
          "pieces: holdings of a large file", 20'000,
          [](size_t n) {
            PieceHoldings holdings;
            holdings.files[a_node(1)].assign(n, true);
            return encode_piece_holdings(holdings);
          },
          [](const std::string& text) { return decode_piece_holdings(text).ok(); }),
      text_probe(
          "pieces: a seal", 500, [](size_t n) { return encode_seal(std::vector<Digest>(n)); },
          [](const std::string& text) { return decode_seal(text).ok(); }),
  };
}

// A step with one token from each of many sequences.
Probes steps() {
  const auto limits = [](size_t n) {
    return BatchLimits{.tokens_max = static_cast<int>(n),
                       .page_list_entries_max = static_cast<int>(4 * n),
                       .pages = static_cast<int>(4 * n),
                       .vocab_size = 1000};
  };
  return {{"step: sequences", 8000, [limits](size_t n) -> Reading {
             Step step;
             for (size_t i = 0; i < n; ++i) {
               step.batch.tokens.push_back(1);
               step.batch.positions.push_back(0);
               step.batch.list_offsets.push_back(static_cast<int32_t>(i));
               step.batch.page_lists.push_back(static_cast<int32_t>(i));
               step.batch.outputs.push_back(static_cast<int32_t>(i));
               step.requests.emplace_back();
             }
             std::vector<std::byte> bytes;
             encode_step(step, bytes);
             return [bytes, limit = limits(n)] {
               Step read;
               return decode_step(bytes, limit, read).ok();
             };
           }}};
}

}  // namespace

Probes frame_probes() {
  Probes all;
  for (const auto& part : {http(), router(), cluster(), node(), steps()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace lockstep
