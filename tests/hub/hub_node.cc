// One machine of a cluster that shares a download, for tests/hub/shared_test.py: a PieceStore,
// served to the others over HTTP on the loopback, and commands on stdin, each answered by a line:
//
//   peers PORT PORT ...      the ports of all machines, 0 for one that is lost -> "ok"
//   fetch all|share          download everything, or a share and copies of the others' shares
//                            -> "received BYTES"
//   seal                     check the files of which only parts are here -> "ok"
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

#include "base/files/mapped_file.h"
#include "hub/files/piece_plan.h"
#include "hub/files/piece_store.h"
#include "hub/http/download.h"
#include "hub/http/hub_client.h"
#include "hub/shared_source.h"
#include "net/http/http_server.h"

namespace lockstep {
namespace {

struct Node {
  Node(ModelId model, ModelFiles listed, const std::filesystem::path& folder, uint64_t piece_bytes)
      : id(std::move(model)), files(std::move(listed)), store(folder, piece_bytes) {}

  int self = 0;
  HubOptions hub;
  bool has_hub = true;
  ModelId id;
  ModelFiles files;
  PieceStore store;
  bool lies = false;  // sends wrong bytes with a digest that matches them
  std::vector<int> ports{};
  std::atomic<uint64_t> received{0};
  std::atomic<uint64_t> served{0};

  std::vector<int> machines() const {
    std::vector<int> all;
    for (size_t i = 0; i < ports.size(); ++i) {
      if (ports[i] > 0) all.push_back(static_cast<int>(i));
    }
    return all;
  }
};

class HttpPeers : public PeerPieces {
 public:
  explicit HttpPeers(const Node& node)
      : node_(node),
        client_({.connect = std::chrono::seconds(2), .silence = std::chrono::seconds(5)}, nullptr) {
  }

  std::vector<int> alive() override {
    std::vector<int> others = node_.machines();
    std::erase_if(others, [&](int machine) { return machine == node_.self; });
    return others;
  }

  Result<bool> fetch(int machine, const HubFile& file, uint32_t piece, std::span<std::byte> bytes,
                     Digest& digest) override {
    return ask(machine, "piece", file, piece, bytes, digest);
  }

  Result<std::optional<Digest>> digest(int machine, const HubFile& file, uint32_t piece) override {
    Digest digest{};
    if (!TRY(ask(machine, "digest", file, piece, {}, digest))) return std::optional<Digest>();
    return std::optional(digest);
  }

 private:
  // The answer is the digest followed by the bytes.
  Result<bool> ask(int machine, const char* what, const HubFile& file, uint32_t piece,
                   std::span<std::byte> bytes, Digest& digest) {
    std::string body;
    const auto answer = TRY(client_.get(
        {.url = fmt::format("http://127.0.0.1:{}/{}/{}/{}",
                            node_.ports[static_cast<size_t>(machine)], what, file.hash, piece),
         .sink = [&](std::span<const std::byte> part) {
           body.append(reinterpret_cast<const char*>(part.data()), part.size());
           return body.size() <= sizeof(Digest) + bytes.size();
         }}));
    if (answer.status != 200 || body.size() != sizeof(Digest) + bytes.size()) return false;
    std::memcpy(digest.data(), body.data(), sizeof(Digest));
    std::copy(body.begin() + sizeof(Digest), body.end(), reinterpret_cast<char*>(bytes.data()));
    return true;
  }

  const Node& node_;
  HttpClient client_;
};

void serve_piece(Node& node, const HttpRequest& request, const HttpReply& reply) {
  std::istringstream words(request.path);
  std::string empty, what, hash, index;
  for (std::string* word : {&empty, &what, &hash, &index}) std::getline(words, *word, '/');
  for (const HubFile& file : node.files.files) {
    if (file.hash != hash) continue;
    const auto piece = static_cast<uint32_t>(std::stoul(index));
    std::vector<std::byte> bytes(node.store.cut(file).range(piece).size());
    const auto is_there = node.store.read(file, piece, bytes);
    if (!is_there.ok() || !is_there.value()) break;
    if (node.lies) bytes[0] ^= std::byte{1};
    const Digest digest = sha256(bytes);
    std::string body(reinterpret_cast<const char*>(digest.data()), digest.size());
    if (what == "piece") {
      body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      node.served += bytes.size();
    }
    return reply.send({.content_type = "application/octet-stream", .body = std::move(body)});
  }
  reply.send({.status = 404});
}

// A machine's share: every n-th section of a file, as layers are assigned to stages.
std::vector<int> keepers(const Node& node, const HubFile& file, uint32_t piece, bool is_share) {
  const std::vector<int> machines = node.machines();
  if (!is_share) return machines;
  const PieceCut cut = node.store.cut(file);
  const uint32_t count = cut.count();
  std::vector<PieceHolder> holders;
  for (size_t i = 0; i < machines.size(); ++i) {
    std::vector<bool> own(count);
    for (uint32_t k = 0; k < count; ++k) own[k] = k * machines.size() / count == i;
    holders.push_back({.machine = machines[i], .has = own, .needs = own, .room_bytes = file.size});
  }
  return copies_of(file.hash, cut, holders)[piece];
}

Result<std::string> run_order(Node& node, const std::string& line) {
  std::istringstream words(line);
  std::string order;
  words >> order;
  if (order == "peers") {
    node.ports.clear();
    for (int port = 0; words >> port;) node.ports.push_back(port);
    return std::string("ok");
  }
  if (order == "seal") {
    HttpPeers peers(node);
    for (const HubFile& file : node.files.files) {
      if (!node.store.is_whole(file)) TRY(seal_file(node.store, file, peers));
    }
    return std::string("ok");
  }
  words >> order;
  const bool is_share = order == "share";
  node.received = 0;
  const auto keep = [&node, is_share](const HubFile& file, uint32_t piece) {
    return keepers(node, file, piece, is_share);
  };
  const auto make_source = [&]() -> std::unique_ptr<PieceSource> {
    std::unique_ptr<PieceSource> hub;
    if (node.has_hub) hub = std::make_unique<HubSource>(node.hub, node.id, node.files.commit);
    return std::make_unique<SharedSource>(SharedSourceOptions{node.self, keep},
                                          std::make_unique<HttpPeers>(node), std::move(hub));
  };
  DownloadOptions options{.connections = 2, .patience = std::chrono::seconds(20)};
  if (is_share) {
    options.wants = [&](const HubFile& file, uint32_t piece) {
      const auto those = keep(file, piece);
      return std::find(those.begin(), those.end(), node.self) != those.end();
    };
  }
  TRY(download(node.store, node.files.files, make_source, options));
  return fmt::format("received {} served {}", node.received.load(), node.served.load());
}

// hub_node SELF FOLDER LIST REPOSITORY ENDPOINT|none PIECE_BYTES honest|lies
Status run(char** arguments) {
  Node node(TRY(parse_model_id(arguments[3])),
            TRY(parse_model_files(TRY(read_small_file(arguments[2])))), arguments[1],
            std::stoull(arguments[5]));
  node.self = std::stoi(arguments[0]);
  node.has_hub = std::string_view(arguments[4]) != "none";
  node.lies = std::string_view(arguments[6]) == "lies";
  node.hub.settings.endpoint = arguments[4];
  node.hub.retries = 1;
  node.hub.received = &node.received;
  const auto server =
      TRY(HttpServer::listen("127.0.0.1", 0, {}, [&](HttpRequest request, HttpReply reply) {
        serve_piece(node, request, reply);
      }));
  std::thread thread([&] { server->run(); });
  fmt::print("port {}\n", server->port());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const auto answer = run_order(node, line);
    fmt::print("{}\n", answer.ok() ? answer.value() : "error " + answer.error().message);
    std::fflush(stdout);
  }
  server->stop();
  thread.join();
  return Ok{};
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  if (argc != 8) return 2;
  const auto status = lockstep::run(argv + 1);
  if (!status.ok()) fmt::print(stderr, "{}\n", status.error().message);
  return status.ok() ? 0 : 1;
}
