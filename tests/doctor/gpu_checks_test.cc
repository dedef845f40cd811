// GPUs: facts in, findings out, and the GPUs of this machine: tests install a software one.
#include "doctor/checks/gpu_checks.h"

#include <filesystem>
#include <string>

#include "doctor/check_support.h"
#include "doctor/doctor.h"

using namespace lockstep;

namespace {

constexpr uint64_t kBytes = 24'000'000'000;

GpuReport good_gpu() {
  return {.name = "Radeon", .driver = "radv, Mesa 26.1.2", .memory_bytes = kBytes};
}

}  // namespace

TEST_CASE("a GPU that passed its self-test is good, and the flag for it is named") {
  const Findings findings = judge_gpus({.reason = "", .gpus = {good_gpu(), good_gpu()}});
  check_all_well(findings);
  REQUIRE(findings.size() == 2);
  CHECK(findings[1].sentence ==
        "the GPU Radeon (radv, Mesa 26.1.2) with 24.00 GB passed its self-test; --device vulkan:1 "
        "uses it");
}

TEST_CASE("a software GPU is called that") {
  GpuReport gpu = good_gpu();
  gpu.is_software = true;
  const Findings findings = judge_gpus({.reason = "", .gpus = {gpu}});
  check_all_well(findings);
  CHECK(found(findings, "gpu")
            ->sentence.ends_with(
                "passed its self-test, but is software and slower than the processor"));
}

TEST_CASE("a GPU that is refused is a note with the reason") {
  GpuReport gpu = good_gpu();
  gpu.problem = "it computes other bits";
  const Findings findings = judge_gpus({.reason = "", .gpus = {gpu}});
  check_sentences(findings);
  CHECK(severity_of(findings, "gpu") == Severity::kNote);
  CHECK(found(findings, "gpu")->sentence.ends_with("is not used: it computes other bits"));
  CHECK(found(findings, "gpu")->mend.starts_with("update its driver"));
}

TEST_CASE("a machine without GPUs or Vulkan is all right") {
  check_all_well(judge_gpus({}));
  const Findings findings = judge_gpus({.reason = "this system has no Vulkan", .gpus = {}});
  check_all_well(findings);
  CHECK(findings.front().sentence == "models run on the processor: this system has no Vulkan");
}

TEST_CASE("the GPUs of this machine are found and tested") {
  const GpuFacts facts = collect_gpus();
  check_sentences(judge_gpus(facts));
#if defined(LOCKSTEP_HAS_GPU)
  REQUIRE_MESSAGE(facts.reason.empty(), facts.reason);
  REQUIRE_FALSE(facts.gpus.empty());
  for (const GpuReport& gpu : facts.gpus) {
    CHECK_FALSE(gpu.name.empty());
    CHECK_FALSE(gpu.driver.empty());
    CHECK_MESSAGE(gpu.problem.empty(), gpu.problem);
  }
#else
  CHECK_FALSE(facts.reason.empty());
#endif
}

TEST_CASE("GPUs are tested in a process of its own, which may crash, hang or say anything") {
  const FolderOfTest folder;
  const auto program = [&](const std::string& script) {
    const std::string path = (folder.path() / "program.sh").string();
    folder.write("program.sh", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return examine_gpus_apart(path);
  };
  const Findings good = judge_gpus({.reason = "", .gpus = {good_gpu()}});
  const std::string json = dump_json(findings_json(good));
  CHECK(program("echo '" + json + "'; test \"$*\" = 'doctor --gpus --json'") == good);
  const auto unknown = [&](const std::string& script) {
    const Findings findings = program(script);
    check_sentences(findings);
    REQUIRE(findings.size() == 1);
    CHECK(severity_of(findings, "gpu") == Severity::kNote);
    return findings.front().sentence;
  };
  CHECK(
      unknown("kill -SEGV $$").ends_with("their test was ended by signal 11, so a driver crashes"));
  CHECK(unknown("exit 3").ends_with("their test ended with status 3"));
  CHECK(unknown("echo '{\"findings\": 3}'").ends_with("their test ended with status 0"));
  CHECK(unknown("echo '{\"findings\": [{\"check\": \"gpu\"}]}'")
            .ends_with("their test ended with status 0"));
  CHECK(examine_gpus_apart((folder.path() / "missing").string()).front().check == "gpu");
}
