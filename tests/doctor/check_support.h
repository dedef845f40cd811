// Shared by the tests of the doctor's checks: looking up a finding, and a folder in place of /.
#pragma once

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "doctor/facts/finding.h"

namespace lockstep {

// The most severe finding of this check; nullopt if there is none.
inline std::optional<Finding> found(const Findings& findings, const std::string& check) {
  std::optional<Finding> gravest;
  for (const Finding& one : findings) {
    if (one.check == check && (!gravest || one.severity > gravest->severity)) gravest = one;
  }
  return gravest;
}

inline Severity severity_of(const Findings& findings, const std::string& check) {
  const auto finding = found(findings, check);
  REQUIRE_MESSAGE(finding.has_value(), check);
  return finding->severity;
}

// A finding is one sentence without a full stop.
inline void check_sentences(const Findings& findings) {
  for (const Finding& one : findings) {
    CHECK_FALSE(one.check.empty());
    REQUIRE_FALSE(one.sentence.empty());
    CHECK(one.sentence.back() != '.');
    CHECK(one.sentence.find('\n') == std::string::npos);
  }
}

inline void check_all_well(const Findings& findings) {
  CHECK_FALSE(findings.empty());
  for (const Finding& one : findings) {
    CHECK_MESSAGE(one.severity == Severity::kOk, one.sentence);
    CHECK(one.mend.empty());
  }
  check_sentences(findings);
}

class FolderOfTest {
 public:
  FolderOfTest() {
    std::string name = (std::filesystem::temp_directory_path() / "lockstep_doctor_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~FolderOfTest() { std::filesystem::remove_all(path_); }
  FolderOfTest(const FolderOfTest&) = delete;
  FolderOfTest& operator=(const FolderOfTest&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

 private:
  std::filesystem::path path_;
};

// PATH begins with the folder while it lives.
class ToolsInPath {
 public:
  explicit ToolsInPath(const FolderOfTest& folder) : before_(std::getenv("PATH")) {
    ::setenv("PATH", (folder.path().string() + ":" + before_).c_str(), 1);
  }
  ~ToolsInPath() { ::setenv("PATH", before_.c_str(), 1); }

 private:
  std::string before_;
};

// A program of this name, run by the shell.
inline void write_tool(const FolderOfTest& folder, const std::string& name,
                       const std::string& script) {
  folder.write(name, "#!/bin/sh\n" + script);
  REQUIRE(::chmod((folder.path() / name).c_str(), 0755) == 0);
}

}  // namespace lockstep
