#include "exit_record.h"

namespace holdfast::runner {
namespace {

std::string counts(const OutputCount& output) { return std::to_string(output.kept) + " " + std::to_string(output.dropped); }

}  // namespace

std::string encode(const ExitRecord& record) {
  return "holdfast-exit 1\nexit-code " + std::to_string(record.exit_code) + "\nsignal " + std::to_string(record.signal) + "\ntimed-out " +
         std::to_string(record.timed_out) + "\ncancelled " + std::to_string(record.cancelled) + "\nstart-error " +
         (record.start_error.empty() ? "-" : record.start_error) + "\nstdout " + counts(record.out) + "\nstderr " + counts(record.err) +
         "\nend\n";
}

}  // namespace holdfast::runner
