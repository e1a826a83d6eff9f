#pragma once

#include <napi.h>

#include "events.h"
#include "proxy.h"

namespace holdfast::binding {

/// `{ type: 'drained', id, address, port, closed }`, `{ type: 'ejected' | 'returned', id, address, port }` or `{ type: 'accept_paused', detail }`.
Napi::Object event_value(Napi::Env env, const proxy::Event& event);

/// `[{ id, port } | { id, reason, detail }]`.
Napi::Array results_value(Napi::Env env, const std::vector<proxy::ListenResult>& results);

/// Flat rows: id, active, completed, failed, refused, reset, drained, bytes in, bytes out, dial failures, limited,
/// evicted, dropped, number of endpoints, and for each of them: family, the address as four big-endian 32-bit numbers, port, active, total,
/// 1 when draining + 2 when ejected.
Napi::Float64Array stats_value(Napi::Env env, const std::vector<proxy::ListenerStats>& stats);

}  // namespace holdfast::binding
