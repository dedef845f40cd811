// OfferedModels: models by name while their files come.
#include "node/cluster/offered_models.h"

#include <doctest/doctest.h>

#include <thread>

#include "base/threads/work.h"
#include "node/fake_service.h"

using namespace lockstep;

namespace {

using std::chrono::milliseconds;

// Longer than any test may take; no test waits for its end.
constexpr milliseconds kLong{120'000};

DesiredState desired_tiny() {
  DesiredState desired;
  DesiredEntry entry;
  entry.name = "org/tiny";
  entry.path = "/models/tiny";
  entry.wanted = true;
  entry.promises.aliases = {"small"};
  entry.stamp.time_ms = 1;
  REQUIRE(desired.put(entry).ok());
  return desired;
}

OfferedModels::Offers offer(std::shared_ptr<ModelService> model, std::string problem = "") {
  return {{"org/tiny", {std::move(model), std::move(problem)}}};
}

// Whether `publish` ends the wait for a model whose files are being fetched.
template <typename Publish>
void check_wait_ends(std::string_view name, const Publish& publish) {
  OfferedModels models;
  models.publish(desired_tiny(), offer(nullptr));
  std::thread waiting([&] { models.await_files(name, kLong); });
  publish(models);
  waiting.join();
}

}  // namespace

TEST_CASE("a model is found by its name, an alias, or as the only one") {
  OfferedModels models;
  const auto service = std::make_shared<FakeService>();
  models.publish(desired_tiny(), offer(service));
  for (const char* name : {"org/tiny", "small", ""}) {
    const auto own = models.name_of(name);
    REQUIRE(own.ok());
    CHECK(own.value() == "org/tiny");
    CHECK(models.service_of(own.value()).value() == service);
  }
  CHECK(models.models().size() == 1);
  CHECK(models.name_of("org/tinny").error().message.find("did you mean org/tiny") !=
        std::string::npos);
  models.publish({}, {});
  CHECK(models.name_of("org/tiny").error().code == ErrorCode::kNotFound);
  CHECK(models.service_of("org/tiny").error().code == ErrorCode::kNotFound);
}

TEST_CASE("without its files a model is listed by nobody, and its problem is told") {
  OfferedModels models;
  models.publish(desired_tiny(), offer(nullptr));
  CHECK(models.models().empty());
  CHECK(models.problem_of("/models/tiny").empty());
  CHECK(models.service_of("org/tiny").error().message ==
        "the files of the model 'org/tiny' are not on this node yet");
  models.publish(desired_tiny(), offer(nullptr, "no node has them"));
  CHECK(models.problem_of("/models/tiny") == "no node has them");
  CHECK(models.service_of("org/tiny").error().message.ends_with("yet: no node has them"));
}

TEST_CASE("a request waits for files until they are here, cannot come, or nobody wants them") {
  check_wait_ends("small", [](OfferedModels& models) {
    models.publish(desired_tiny(), offer(std::make_shared<FakeService>()));
  });
  check_wait_ends("org/tiny", [](OfferedModels& models) {
    models.publish(desired_tiny(), offer(nullptr, "no node has them"));
  });
  check_wait_ends("", [](OfferedModels& models) { models.publish({}, {}); });
  check_wait_ends("unknown", [](OfferedModels&) {});

  OfferedModels models;
  models.publish(desired_tiny(), offer(nullptr));
  models.await_files("org/tiny", milliseconds(1));
  Work work(kLong);
  work.cancel();
  const Work::Scope scope(work);
  models.await_files("org/tiny", kLong);
}
