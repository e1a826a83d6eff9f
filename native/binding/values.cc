#include "values.h"

#include <algorithm>

namespace holdfast::binding {
namespace {

/// Exact to 2^53: bytes of 9 PB.
double number(std::uint64_t value) { return static_cast<double>(value); }

void append(std::vector<double>& row, const proxy::EndpointStats& endpoint) {
  row.push_back(endpoint.address.family == net::Family::ipv6 ? 6 : 4);
  for (std::size_t word = 0; word < 16; word += 4) {
    const std::uint8_t* bytes = endpoint.address.bytes.data() + word;
    row.push_back(bytes[0] * 16777216.0 + bytes[1] * 65536.0 + bytes[2] * 256.0 + bytes[3]);
  }
  row.insert(row.end(), {double(endpoint.address.port), number(endpoint.active), number(endpoint.total), double(endpoint.draining + 2 * endpoint.ejected)});
}

void append(std::vector<double>& row, const proxy::HistogramStats& histogram) {
  for (const std::uint64_t count : histogram.classes) row.push_back(number(count));
  row.push_back(number(histogram.sum_us));
}

Napi::Array seconds_value(Napi::Env env, const proxy::Bounds& bounds) {
  const Napi::Array values = Napi::Array::New(env, bounds.size());
  for (std::uint32_t i = 0; i < bounds.size(); ++i) values.Set(i, number(bounds[i]) / 1e6);
  return values;
}

}  // namespace

const char* reason_name(proxy::BindFailure reason) {
  switch (reason) {
    case proxy::BindFailure::address_in_use:
      return "address_in_use";
    case proxy::BindFailure::permission_denied:
      return "permission_denied";
    case proxy::BindFailure::address_unavailable:
      return "address_unavailable";
    case proxy::BindFailure::fd_limit:
      return "fd_limit";
    case proxy::BindFailure::other:
      break;
  }
  return "other";
}

Napi::Object event_value(Napi::Env env, const proxy::Event& event) {
  const Napi::Object value = Napi::Object::New(env);
  if (const auto* drained = std::get_if<proxy::Drained>(&event)) {
    value.Set("type", "drained");
    value.Set("id", drained->id);
    value.Set("address", drained->endpoint.host());
    value.Set("port", drained->endpoint.port);
    value.Set("closed", number(drained->closed));
  } else if (const auto* ejected = std::get_if<proxy::Ejected>(&event)) {
    value.Set("type", ejected->returned ? "returned" : "ejected");
    value.Set("id", ejected->id);
    value.Set("address", ejected->endpoint.host());
    value.Set("port", ejected->endpoint.port);
  } else {
    value.Set("type", "accept_paused");
    value.Set("detail", std::get<proxy::AcceptPaused>(event).detail);
  }
  return value;
}

Napi::Array results_value(Napi::Env env, const std::vector<proxy::ListenResult>& results) {
  const Napi::Array values = Napi::Array::New(env, results.size());
  for (std::uint32_t i = 0; i < results.size(); ++i) {
    const Napi::Object value = Napi::Object::New(env);
    value.Set("id", results[i].id);
    if (results[i].error) {
      value.Set("reason", reason_name(results[i].error->reason));
      value.Set("detail", results[i].error->detail);
    } else {
      value.Set("port", results[i].port);
    }
    values.Set(i, value);
  }
  return values;
}

Napi::Float64Array stats_value(Napi::Env env, const std::vector<proxy::ListenerStats>& stats) {
  std::vector<double> rows;
  rows.reserve(stats.size() * 32);
  for (const proxy::ListenerStats& row : stats) {
    rows.push_back(row.id);
    rows.push_back(number(row.active));
    for (const std::uint64_t ended : row.ended) rows.push_back(number(ended));
    rows.insert(rows.end(), {number(row.bytes_in), number(row.bytes_out), number(row.dial_failures), number(row.limited), number(row.evicted),
                             number(row.dropped), double(row.times.has_value()), double(row.endpoints.size())});
    if (row.times) {
      append(rows, row.times->dial);
      append(rows, row.times->connection);
    }
    for (const proxy::EndpointStats& endpoint : row.endpoints) append(rows, endpoint);
  }
  Napi::Float64Array value = Napi::Float64Array::New(env, rows.size());
  std::copy(rows.begin(), rows.end(), value.Data());
  return value;
}

Napi::Object bounds_value(Napi::Env env) {
  const Napi::Object value = Napi::Object::New(env);
  value.Set("dial", seconds_value(env, proxy::kDialBounds));
  value.Set("connection", seconds_value(env, proxy::kConnectionBounds));
  return value;
}

}  // namespace holdfast::binding
