#include "base/process/child_environment.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include "base/machine/program_output.h"

using namespace lockstep;

TEST_CASE("secrets and unneeded variables are not passed on") {
  for (const char* name : {"HF_TOKEN", "HF_TOKEN_PATH", "HUGGING_FACE_HUB_TOKEN", "LOCKSTEP_TOKEN",
                           "LOCKSTEP_TOKEN_FILE", "LOCKSTEP_API_KEY", "OPENAI_API_KEY",
                           "AWS_SECRET_ACCESS_KEY", "https_proxy", "NVIDIA_API_KEY",
                           "CREDENTIALS_DIRECTORY", "SSH_AUTH_SOCK", "", "PATH_OF_MY_KEY", "HOM"}) {
    CHECK_MESSAGE(!reaches_children(name), name);
  }
}

TEST_CASE("variables that a worker or a system tool needs are passed on") {
  for (const char* name :
       {"PATH", "HOME", "LANG", "LC_ALL", "LOCKSTEP_ISA", "LOCKSTEP_VERBS_QP", "LD_LIBRARY_PATH",
        "MLX5_SINGLE_THREADED", "ASAN_OPTIONS", "VK_DRIVER_FILES", "XDG_CACHE_HOME"}) {
    CHECK_MESSAGE(reaches_children(name), name);
  }
}

TEST_CASE("a child process sees its variables and none of the secrets") {
  ::setenv("LOCKSTEP_TOKEN", "a-secret", 1);
  ::setenv("LOCKSTEP_VERBS_QP", "rc", 1);
  const auto answer = run_program({.program = "env", .arguments = {}});
  ::unsetenv("LOCKSTEP_TOKEN");
  ::unsetenv("LOCKSTEP_VERBS_QP");
  REQUIRE(answer.ok());
  CHECK(answer.value().output.find("a-secret") == std::string::npos);
  CHECK(answer.value().output.find("LOCKSTEP_VERBS_QP=rc\n") != std::string::npos);
  CHECK(answer.value().output.find("PATH=") != std::string::npos);
}
