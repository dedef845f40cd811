// Bug reports: the archive's format, and that no secret gets into it.
#include "doctor/report/bug_report.h"

#include "base/machine/program_output.h"
#include "doctor/check_support.h"
#include "doctor/report/tar_archive.h"

using namespace lockstep;

namespace {

const std::string kKey(64, 'a');  // 64 hex digits, as of a cluster
const std::string kControlSecret(64, 'c');
constexpr const char* kPem = "MC4CAQAwBQYDK2VwBCIEIBq7nothing";

std::string text_of(const Redaction& redaction, const std::string& text) {
  return redaction.text(text);
}

}  // namespace

TEST_CASE("tar reads an archive's names and contents unchanged") {
  const FolderOfTest folder;
  TarArchive archive(1'700'000'000);
  const std::string long_text(1'000, 'x'), block(512, 'y');
  for (const auto& [name, content] : {std::pair<std::string, std::string>{"f/empty", ""},
                                      {"f/block", block},
                                      {"f/long", long_text}}) {
    REQUIRE(archive.add(name, content).ok());
  }
  folder.write("a.tar", archive.bytes());
  const std::string path = (folder.path() / "a.tar").string();
  const auto list = run_program({.program = "tar", .arguments = {"tf", path}});
  REQUIRE(list.ok());
  CHECK(list.value().status == 0);
  CHECK(list.value().output == "f/empty\nf/block\nf/long\n");
  const auto content =
      run_program({.program = "tar", .arguments = {"xOf", path, "f/block", "f/long"}});
  REQUIRE(content.ok());
  CHECK(content.value().output == block + long_text);
}

TEST_CASE("an archive refuses names and sizes that do not fit") {
  TarArchive archive(0);
  CHECK_FALSE(archive.add("", "x").ok());
  CHECK_FALSE(archive.add(std::string(100, 'n'), "x").ok());
  CHECK(archive.add(std::string(99, 'n'), "x").ok());
  CHECK(archive.add("large", std::string(TarArchive::kBytesMax + 1, 'x')).error().code ==
        ErrorCode::kExhausted);
}

TEST_CASE("text is stripped of everything shaped like a secret, and nothing else") {
  const Redaction redaction;
  CHECK(text_of(redaction, "type PIN 123 456 there within 2 minutes") ==
        "type PIN [removed] there within 2 minutes");
  CHECK(text_of(redaction, "pin: 123456") == "pin [removed]");
  CHECK(text_of(redaction, "key " + kKey + ".") == "key [removed].");
  CHECK(text_of(redaction, "--token lockstep-join-0123abcd now").find("0123abcd") ==
        std::string::npos);
  CHECK(text_of(redaction, "Authorization: Bearer abc123defgh\"") ==
        "Authorization: Bearer [removed]\"");
  CHECK(text_of(redaction, "password=hunter") == "password=[removed]");
  CHECK(text_of(redaction, "x hf_abcDEF123 y") == "x [removed] y");
  for (const char* plain :
       {"the model spins pinned to 4 cores", "ping 5 ms", "token 5 of 7", "token sampling",
        "half_done", "node 1234567890abcdef", "epoch 12, rank 3: 10.0.0.2:8601", ""}) {
    CHECK(text_of(redaction, plain) == plain);
  }
}

TEST_CASE("JSON values are removed by key, and model paths keep their last part") {
  const auto json =
      parse_json(R"({"name":"m","path":"/data/anna/qwen","Token":"x","pins":[{"pin":"123456"}],)"
                 R"("prompt":"hello","ranks":[{"pid":7}],"note":"PIN 12 34","tokens":5})");
  REQUIRE(json.ok());
  CHECK(dump_json(Redaction().json(json.value())) ==
        R"({"name":"m","path":".../qwen","Token":"[removed]","pins":"[removed]",)"
        R"("prompt":"[removed]","ranks":[{"pid":7}],"note":"PIN [removed]","tokens":5})");
}

TEST_CASE("this machine's secrets are removed wherever they occur") {
  const FolderOfTest home;
  home.write("cluster_key", kKey + "\n");
  home.write("control_secret", kControlSecret + "\n");
  home.write("node_key.pem", std::string("-----BEGIN PRIVATE KEY-----\n") + kPem + "\n");
  const Redaction redaction = Redaction::of_machine(home.path());
  const std::string text = redaction.text("a" + kKey + "b" + kControlSecret + "d " + kPem + " in " +
                                          home.path().string() + "/desired");
  CHECK(text.find(kKey) == std::string::npos);
  CHECK(text.find(kPem) == std::string::npos);
  CHECK(text.find(kControlSecret) == std::string::npos);
  CHECK(text.find("~/desired") != std::string::npos);
}

TEST_CASE("the desired state is shown without folders") {
  const FolderOfTest home;
  CHECK(redacted_desired_state(home.path(), Redaction()).error().code == ErrorCode::kNotFound);
  home.write("desired.json",
             "lockstep desired state 1 abc\n{\"models\":[{\"path\":\"/a/b/c\"}]}\n");
  CHECK(redacted_desired_state(home.path(), Redaction()).value() ==
        "{\"models\":[{\"path\":\".../c\"}]}\n");
  home.write("desired.json", "torn");
  CHECK(redacted_desired_state(home.path(), Redaction()).error().code == ErrorCode::kCorrupt);
}

TEST_CASE("an archive is private to its owner, overwrites nothing and has one format") {
  const FolderOfTest folder;
  const BugReport report{.files = {{"about.txt", "what", "content"}}};
  const auto path = folder.path() / "r.tar";
  REQUIRE(write_bug_report(report, path).ok());
  const auto rights = std::filesystem::status(path).permissions();
  CHECK((rights & std::filesystem::perms::all) ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
  CHECK_FALSE(write_bug_report(report, path).ok());
  CHECK_FALSE(write_bug_report(report, folder.path() / "r.tar.gz").ok());
  CHECK_FALSE(write_bug_report(report, folder.path() / "missing" / "r.tar").ok());
}

TEST_CASE("on a Mac the log is the file that launchd's service names, of the user or the system") {
  const FolderOfTest folder;
  folder.write("lockstep.log", "first\nlast\n");
  const std::string log = (folder.path() / "lockstep.log").string();
  write_tool(folder, "launchctl",
             "[ \"$*\" = 'print system/lockstep' ] || exit 113\n"
             "printf 'system/lockstep = {\\n\\tstderr path = " +
                 log + "\\n}\\n'");
  const ToolsInPath path(folder);
  const auto found_log = launchd_log();
  REQUIRE(found_log.ok());
  CHECK(found_log.value() == "first\nlast\n");
  write_tool(folder, "launchctl", "exit 113");
  CHECK(launchd_log().error().code == ErrorCode::kNotFound);
}
