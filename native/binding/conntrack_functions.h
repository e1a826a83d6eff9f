#pragma once

#include <napi.h>

namespace holdfast::binding {

/// `listFlows`, `removeFlows`, `markFlows`, `challengeFlows`; src/adapters/dataplane/conntrack-addon.ts has the types. Each runs on a thread of the pool
/// with sockets of its own, so that calls do not wait for each other.
void set_conntrack_functions(Napi::Env env, Napi::Object exports);

}  // namespace holdfast::binding
