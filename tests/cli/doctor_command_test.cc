// The real program: `lockstep doctor` and `lockstep bug-report`, with a fake node.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/machine/program_output.h"
#include "json/json.h"
#include "net/http/http_server.h"

using namespace lockstep;

namespace {

namespace fs = std::filesystem;

constexpr const char* kPin = "402 715";
const std::string kClusterKey = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
constexpr const char* kPrompt = "what my doctor told me";
constexpr const char* kHubToken = "hf_abcdefghijklmnopqrstuvwxyz";

// $LOCKSTEP_HOME with a cluster key that only its owner can read, or everybody.
class Home {
 public:
  explicit Home(fs::perms key_rights = fs::perms::owner_read) {
    std::string name = (fs::temp_directory_path() / "lockstep_home_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
    std::ofstream(path_ / "cluster_key") << kClusterKey << "\n";
    fs::permissions(path_ / "cluster_key", key_rights);
    std::ofstream(path_ / "desired.json")
        << "lockstep desired state 1 "
           "x\n{\"models\":[{\"name\":\"m\",\"path\":\"/secret/folder/m\"}]}\n";
  }
  ~Home() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Answers as a node that shows a PIN and, by mistake, more than it should.
class PlayedNode {
 public:
  PlayedNode() {
    auto server = HttpServer::listen("localhost", 0, {}, [](HttpRequest request, HttpReply reply) {
      if (request.path == "/cluster/status") {
        return reply.send({.body = dump_json(JsonObject{
                               {"version", "0.1.0"},
                               {"models", JsonArray{}},
                               {"pins", JsonArray{JsonObject{{"pin", kPin}}}},
                               {"note", std::string("type PIN ") + kPin + " there"},
                               {"last_error", "key " + kClusterKey},
                               {"nodes", JsonArray{JsonObject{{"name", "annas-mac"},
                                                              {"address", "10.20.30.40:8601"},
                                                              {"is_self", true}}}},
                               {"prompt", kPrompt}})});
      }
      reply.send(
          {.content_type = "text/plain", .body = "requests 5\n# token=" + kClusterKey + "\n"});
    });
    REQUIRE_MESSAGE(server.ok(), server.error().message);
    server_ = std::move(server.value());
    thread_ = std::thread([this] { server_->run(); });
  }
  ~PlayedNode() {
    server_->stop();
    thread_.join();
  }
  std::string port() const { return std::to_string(server_->port()); }

 private:
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

ProgramAnswer run_lockstep(const Home& home, const std::vector<std::string>& arguments) {
  std::vector<std::string> all{"LOCKSTEP_HOME=" + home.path().string(),
                               std::string("HF_TOKEN=") + kHubToken,
                               std::string(LOCKSTEP_BINARY_DIR) + "/lockstep"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  auto answer = run_program(
      {.program = "env", .arguments = std::move(all), .timeout = std::chrono::minutes(4)});
  REQUIRE_MESSAGE(answer.ok(), answer.error().message);
  return std::move(answer.value());
}

bool has_problem(const Json& findings, std::string_view check) {
  for (const Json& one : find(findings, "findings")->get_array()) {
    if (find(one, "check")->as_string() != check) continue;
    if (find(one, "severity")->as_string() == "problem") return true;
  }
  return false;
}

}  // namespace

TEST_CASE("doctor prints valid JSON, and its exit status says whether there is a problem") {
  for (const fs::perms rights :
       {fs::perms::owner_read, fs::perms::owner_read | fs::perms::others_read}) {
    const Home home(rights);
    const ProgramAnswer answer = run_lockstep(home, {"doctor", "--json"});
    const auto json = parse_json(answer.output);
    REQUIRE_MESSAGE(json.ok(), answer.output);
    int64_t problems = 0, last = 0;
    for (const Json& one : find(json.value(), "findings")->get_array()) {
      const auto& severity = find(one, "severity")->as_string();
      const int64_t rank = severity == "ok" ? 0 : severity == "note" ? 1 : 2;
      CHECK(rank >= last);  // problems come last
      last = rank;
      problems += rank == 2 ? 1 : 0;
    }
    CHECK(find(json.value(), "problems")->to_number<int64_t>() == problems);
    CHECK(answer.status == (problems > 0 ? 1 : 0));
    CHECK(has_problem(json.value(), "key_rights") == (rights != fs::perms::owner_read));
  }
}

TEST_CASE("doctor checks RDMA devices through the library that links would use") {
  const std::string library = std::string(LOCKSTEP_BINARY_DIR) + "/libfakeverbs.so";
  if (!fs::exists(library)) return;  // a build without RDMA
  const Home home;
  const auto answer = run_program(
      {.program = "env",
       .arguments = {"LOCKSTEP_HOME=" + home.path().string(), "LOCKSTEP_VERBS_LIBRARY=" + library,
                     std::string(LOCKSTEP_BINARY_DIR) + "/lockstep", "doctor"},
       .timeout = std::chrono::minutes(1)});
  REQUIRE_MESSAGE(answer.ok(), answer.error().message);
  const std::string& said = answer.value().output;
  CHECK_MESSAGE(said.find("port 1 is active") != std::string::npos, said);
}

TEST_CASE("doctor's text ends with a summary, without symbols where stdout is no terminal") {
  const Home home;
  const ProgramAnswer answer = run_lockstep(home, {"doctor"});
  CHECK(answer.output.find("\u2713") == std::string::npos);
  CHECK(answer.output.find("problem") != std::string::npos);
  CHECK(answer.output.ends_with("\n"));
}

TEST_CASE("doctor asks the local node") {
  const Home home;
  const PlayedNode node;
  const ProgramAnswer answer = run_lockstep(home, {"doctor", "--port", node.port()});
  CHECK_MESSAGE(answer.output.find("a node runs here on port " + node.port()) != std::string::npos,
                answer.output);
}

TEST_CASE("doctor --cables compares the files of several Macs, and refuses other files") {
  const Home home;
  const std::string folder = LOCKSTEP_SOURCE_DIR "/tests/data/mac_tools/";
  const ProgramAnswer answer =
      run_lockstep(home, {"doctor", "--cables", folder + "studio.json", folder + "macbook.json"});
  CHECK(answer.output ==
        "ok       a cable joins studio port 2 and macbook port 1 with 80 Gbit/s\n"
        "no problems, no notes\n");
  CHECK(answer.status == 0);
  const ProgramAnswer refused = run_lockstep(home, {"doctor", "--cables", folder + "README.md"});
  CHECK(refused.status != 0);
  CHECK(refused.output.empty());
}

TEST_CASE("a bug report contains the node's answers, and no key, token, PIN or prompt") {
  const Home home;
  const PlayedNode node;
  const fs::path archive = home.path() / "report.tar";
  const ProgramAnswer answer =
      run_lockstep(home, {"bug-report", "-o", archive.string(), "--port", node.port(), "--json"});
  REQUIRE_MESSAGE(answer.status == 0, answer.output);
  const auto json = parse_json(answer.output);
  REQUIRE_MESSAGE(json.ok(), answer.output);
  CHECK(find(json.value(), "files")->get_array().size() >= 6);

  std::ifstream file(archive, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  for (const std::string& secret :
       {kClusterKey, std::string(kPin), std::string(kPrompt), std::string(kHubToken),
        std::string("/secret/folder"), home.path().string()}) {
    CHECK_MESSAGE(bytes.str().find(secret) == std::string::npos, secret);
  }
  for (const char* there : {"about.txt", "doctor.json", "status.json", "metrics.txt",
                            "desired.json", "requests 5", ".../m"}) {
    CHECK_MESSAGE(bytes.str().find(there) != std::string::npos, there);
  }
  CHECK(run_lockstep(home, {"bug-report", "-o", archive.string()}).status != 0);  // it exists
}

TEST_CASE("a first Mac's report has trials of this machine, and no key, name or address") {
  const Home home;
  const PlayedNode node;
  const fs::path archive = home.path() / "report.tar";
  const ProgramAnswer answer = run_lockstep(
      home, {"bug-report", "--first-mac", "-o", archive.string(), "--port", node.port(), "--json"});
  REQUIRE_MESSAGE(answer.status == 0, answer.output);
  REQUIRE_MESSAGE(run_program({.program = "tar",
                               .arguments = {"xf", archive.string(), "-C", home.path().string()}})
                      .ok(),
                  archive.string());
  const fs::path folder = home.path() / "lockstep-bug-report";
  const auto file = [&](const std::string& name) {
    std::ifstream stream(folder / name, std::ios::binary);
    std::stringstream bytes;
    bytes << stream.rdbuf();
    return bytes.str();
  };
  const auto kernels = parse_json(file("kernels.json"));
  REQUIRE_MESSAGE(kernels.ok(), file("kernels.json"));
  CHECK(find(kernels.value(), "right")->get_bool());
  CHECK(find(kernels.value(), "tables")->get_array().size() >= 1);
  for (const char* name :
       {"rdma.json", "probe-shm.json", "probe-tcp.json", "probe-tcp-encrypted.json",
        "bench-collective.json", "bench-model.json", "bench-ranks.json"}) {
    CHECK_MESSAGE(parse_json(file(name)).ok(), name, ": ", file("trials.txt"));
  }
  CHECK_MESSAGE(file("trials.txt").find("FAILED") == std::string::npos, file("trials.txt"));
  CHECK(file("tools.txt").find("$ uname") != std::string::npos);

  std::string all;
  for (const auto& one : fs::directory_iterator(folder))
    all += file(one.path().filename().string());
  for (const std::string& secret :
       {kClusterKey, std::string(kPin), std::string(kPrompt), std::string(kHubToken),
        std::string("/secret/folder"), home.path().string(), std::string("10.20.30.40"),
        std::string("annas-mac")}) {
    CHECK_MESSAGE(all.find(secret) == std::string::npos, secret);
  }
  CHECK(all.find("[address]:8601") != std::string::npos);
  CHECK(all.find("[host]") != std::string::npos);
}
