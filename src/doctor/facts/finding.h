// Finding: the result of one check of `lockstep doctor`, in one sentence, with the command that
// mends it. Checks come in groups, one header each (memory_checks.h, network_checks.h...). Each has
// a function that collects facts from the machine, and a pure one that judges facts, so that tests
// can feed it any machine.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lockstep {

enum class Severity {
  kOk,
  kNote,     // works, but slower or less safely than it could; or could not be checked
  kProblem,  // does not work, or will not
};

struct Finding {
  std::string check;  // "memlock": the same on every machine, for scripts
  Severity severity = Severity::kOk;
  std::string sentence;
  std::string mend;  // a command, or an action for a person; empty: none

  bool operator==(const Finding&) const = default;
};

using Findings = std::vector<Finding>;

inline void add_ok(Findings& findings, std::string check, std::string sentence) {
  findings.push_back({std::move(check), Severity::kOk, std::move(sentence), ""});
}

inline void add_note(Findings& findings, std::string check, std::string sentence,
                     std::string mend = "") {
  findings.push_back({std::move(check), Severity::kNote, std::move(sentence), std::move(mend)});
}

inline void add_problem(Findings& findings, std::string check, std::string sentence,
                        std::string mend = "") {
  findings.push_back({std::move(check), Severity::kProblem, std::move(sentence), std::move(mend)});
}

}  // namespace lockstep
