#include "transport/verbs/verbs_report.h"

#include "transport/verbs/verbs_devices.h"

#ifdef LOCKSTEP_HAS_VERBS

namespace lockstep {

VerbsReport report_verbs() {
  VerbsReport report{.library = verbs_library_name()};
  if (const auto api = load_verbs(report.library); !api.ok()) {
    report.problem = api.error().message;
    return report;
  }
  report.has_library = true;
  const Result<VerbsDevices*> devices = VerbsDevices::of_process();
  if (devices.ok()) {
    report.problem = devices.value()->problem();
    report.ports = devices.value()->ports();
  } else if (devices.error().code != ErrorCode::kNotFound) {
    report.problem = devices.error().message;
  }
  return report;
}

}  // namespace lockstep

#else

namespace lockstep {

VerbsReport report_verbs() {
  return {.problem = "this lockstep was built without RDMA"};
}

}  // namespace lockstep

#endif
