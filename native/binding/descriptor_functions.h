#pragma once

#include <napi.h>

namespace holdfast::binding {

/// `openChannel`, `sendDescriptors`, `receiveDescriptors`: fd_passing.h.
void set_descriptor_functions(Napi::Env env, Napi::Object exports);

}  // namespace holdfast::binding
