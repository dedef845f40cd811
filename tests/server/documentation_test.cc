// docs/http-api.md and docs/operation.md against the code: request fields and metrics are found in
// the sources by the calls that read or write them.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

namespace lockstep {
namespace {

using Names = std::set<std::string>;
const std::filesystem::path kSource = LOCKSTEP_SOURCE_DIR;

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file, path.string());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void add_found(const std::string& text, const std::regex& pattern, Names& names) {
  for (std::sregex_iterator found(text.begin(), text.end(), pattern), end; found != end; ++found) {
    names.insert((*found)[1]);
  }
}

// The words between backticks.
Names told_names(const std::string& text) {
  Names told, names;
  add_found(text, std::regex("`([^`\n]*)`"), told);
  for (const std::string& code : told) add_found(code, std::regex("([A-Za-z_0-9]+)"), names);
  return names;
}

// The fields that a source of the server requests from a RequestFields.
Names fields_of(const std::string& code) {
  Names names;
  add_found(
      code,
      std::regex(R"re(\.(?:get|text|boolean|integer|number|object|refuse)\(\s*"([a-z_]+)")re"),
      names);
  add_found(code, std::regex(R"re(read\(fields, "([a-z_]+)")re"), names);
  // for (const char* key : {"a", "b"})
  const std::regex list(R"re(const char\* key\s*:\s*\{([^}]*)\})re");
  for (std::sregex_iterator found(code.begin(), code.end(), list), end; found != end; ++found) {
    add_found((*found)[1], std::regex("\"([a-z_]+)\""), names);
  }
  return names;
}

std::string missing(const Names& wanted, const Names& told) {
  std::string text;
  for (const std::string& name : wanted) text += told.contains(name) ? "" : name + " ";
  return text;
}

}  // namespace

TEST_CASE("fields are found however the server reads them") {
  CHECK(fields_of(R"(
      TRY(fields.text("a")); inner.integer("b", 0, 1); TRY(fields.refuse(
          "c", {Json(0)})); TRY(read(fields, "d", 0, 1, x)); json.at("not");
      for (const char* key : {"e", "f"}) {})") == Names{"a", "b", "c", "d", "e", "f"});
  CHECK(missing({"a", "b", "c"}, told_names("a `b` and `x.c`, `\"y\": 1`")) == "a ");
}

TEST_CASE("every field that the server reads is in the documentation of the API") {
  const Names told = told_names(text_of(kSource / "docs/http-api.md"));
  size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kSource / "src/server")) {
    if (entry.path().extension() != ".cc") continue;
    const Names fields = fields_of(text_of(entry.path()));
    count += fields.size();
    CHECK_MESSAGE(missing(fields, told) == "", entry.path().filename().string());
  }
  CHECK(count > 150);  // the patterns still match
}

TEST_CASE("every metric of a node is in the documentation, and no other") {
  const std::regex metric("(lockstep_[a-z_]+)");
  Names made, told, variables;  // of the Ansible role, which begin alike
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(kSource / "packaging/ansible")) {
    if (entry.is_regular_file()) add_found(text_of(entry.path()), metric, variables);
  }
  add_found(text_of(kSource / "src/server/operations/node_metrics.cc"), metric, made);
  add_found(text_of(kSource / "docs/operation.md"), metric, told);
  CHECK(made.size() > 15);
  CHECK(missing(made, told) == "");
  for (const std::string& name : variables) {
    CHECK_FALSE_MESSAGE(made.contains(name), name);
    told.erase(name);
  }
  CHECK(missing(told, made) == "");
}

}  // namespace lockstep
