#include "cli/bench/emulated_clusters.h"

#include <doctest/doctest.h>

#include <string>

#include "device/device_kinds.h"
#include "model/load/open_model.h"
#include "model/load/shape_model.h"

using namespace lockstep;

TEST_CASE("every emulated cluster has two to four machines and a model that opens") {
  const auto models = EmulatedModels::make();
  REQUIRE(models.ok());
  CHECK(emulated_clusters().size() == 16);
  for (const EmulatedCluster& cluster : emulated_clusters()) {
    INFO(cluster_text(cluster));
    CHECK(cluster.machines.size() >= 2);
    CHECK(cluster.machines.size() <= 4);
    const auto name = models.value().name_of(cluster.model);
    REQUIRE(name.ok());
    const auto opened = open_model(name.value());
    REQUIRE_MESSAGE(opened.ok(), (opened.ok() ? "" : opened.error().message));
    CHECK((opened.value().config.experts.count > 0) == (cluster.model != "dense"));
    CHECK((opened.value().config.predicting_layers > 0) == (cluster.model == "drafts"));
    const std::string devices = emulated_devices(cluster.machines);
    for (size_t rank = 0; rank < cluster.machines.size(); ++rank) {
      const auto kind = device_kind_of(devices, static_cast<int>(rank));
      REQUIRE(kind.ok());
      const auto machine = parse_slowed(kind.value());
      REQUIRE(machine.has_value());
      CHECK(machine->read_gb_s == doctest::Approx(cluster.machines[rank].read_gb_s));
      CHECK(machine->kernel_us == doctest::Approx(cluster.machines[rank].kernel_us));
    }
  }
}
