#pragma once

#include <string>

namespace holdfast::runner {

enum class Wish {
  /// Whether it runs.
  look,
  /// Until it has ended.
  wait,
  /// Asks the supervisor to kill it, and waits.
  cancel,
};

/// True when somebody watches the task `<runs>/<id>` (after `look` only). Otherwise nothing of it is left when it returns: what a killed
/// runner left behind has been killed. False as well when there is no such task. Throws std::system_error.
bool settle(const std::string& runs, const std::string& id, Wish wish);

}  // namespace holdfast::runner
