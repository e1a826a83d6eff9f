#pragma once

#include <napi.h>

#include "events.h"
#include "proxy.h"

namespace holdfast::binding {

/// As src/ports/dataplane/data-plane.ts has them.
const char* reason_name(proxy::BindFailure reason);

/// `{ type: 'drained', id, address, port, closed }`, `{ type: 'ejected' | 'returned', id, address, port }` or `{ type: 'accept_paused', detail }`.
Napi::Object event_value(Napi::Env env, const proxy::Event& event);

/// `[{ id, port } | { id, reason, detail }]`.
Napi::Array results_value(Napi::Env env, const std::vector<proxy::ListenResult>& results);

/// Flat rows: id, active, completed, failed, refused, reset, drained, bytes in, bytes out, dial failures, limited,
/// evicted, dropped, 1 when there are times, number of endpoints; then the times: for the dial and for the connection the classes of the
/// histogram and the sum in microseconds; then for each endpoint: family, the address as four big-endian 32-bit numbers, port, active, total,
/// 1 when draining + 2 when ejected.
Napi::Float64Array stats_value(Napi::Env env, const std::vector<proxy::ListenerStats>& stats);

/// `{ dial, connection }`: the upper bounds of their classes but the last, seconds.
Napi::Object bounds_value(Napi::Env env);

}  // namespace holdfast::binding
