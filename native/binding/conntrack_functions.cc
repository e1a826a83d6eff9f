#include "conntrack_functions.h"

#include <algorithm>

#include "arguments.h"
#include "conntrack_row.h"
#include "conntrack_table.h"
#include "errno_error.h"
#include "pool_call.h"
#include "tcp_challenge.h"

namespace holdfast::binding {
namespace {

using conntrack::Entry;
using conntrack::Filter;
using conntrack::Tally;

constexpr double kMost32 = 4294967295.0;

std::uint32_t number_argument_of(const Napi::CallbackInfo& info, std::size_t index, const char* name) {
  return static_cast<std::uint32_t>(integer_argument(info, index, name, 0, kMost32));
}

std::vector<Entry> rows_argument(const Napi::CallbackInfo& info) {
  auto entries = conntrack::read_rows(bytes_argument(info, 0, "rows"));
  if (!entries) throw Napi::TypeError::New(info.Env(), "rows must be rows of listFlows");
  return std::move(*entries);
}

Filter filter_argument(const Napi::CallbackInfo& info) {
  const Napi::Object given = object_argument(info, 0, "filter");
  Filter filter;
  const double family = integer_property(given, "family", 4, 6, 0);
  if (family != 0) filter.family = family == 4 ? net::Family::ipv4 : net::Family::ipv6;
  filter.protocol = static_cast<std::uint8_t>(integer_property(given, "protocol", 0, 255, 0));
  filter.mark = static_cast<std::uint32_t>(integer_property(given, "mark", 0, kMost32, 0));
  filter.mark_mask = static_cast<std::uint32_t>(integer_property(given, "markMask", 0, kMost32, 0));
  if (!given.Get("zone").IsUndefined()) filter.zone = static_cast<std::uint16_t>(integer_property(given, "zone", 0, 65535, 0));
  auto selectors = conntrack::read_selectors(bytes_argument(info, 1, "selectors"));
  if (!selectors) throw Napi::TypeError::New(info.Env(), "selectors must be packed as native/core/conntrack_row.h says");
  filter.any_of = std::move(*selectors);
  return filter;
}

struct Listed {
  int error = 0;
  conntrack::Bytes rows;
};

Napi::Value list_flows_value(const Napi::CallbackInfo& info) {
  const auto work = [filter = filter_argument(info)] {
    Listed listed;
    conntrack::Table table;
    listed.error = table.open();
    if (listed.error == 0) listed.error = table.list(filter, listed.rows);
    return listed;
  };
  return in_pool(info.Env(), work, [](const Napi::Promise::Deferred& deferred, const Listed& listed) {
    const Napi::Env env = deferred.Env();
    if (listed.error != 0) return deferred.Reject(errno_error(env, "list the tracked connections", -listed.error).Value());
    auto rows = Napi::Uint8Array::New(env, listed.rows.size());
    std::copy(listed.rows.begin(), listed.rows.end(), rows.Data());
    deferred.Resolve(rows);
  });
}

void settle_tally(const Napi::Promise::Deferred& deferred, const Tally& tally) {
  const Napi::Env env = deferred.Env();
  const auto value = Napi::Object::New(env);
  value.Set("done", Napi::Number::New(env, tally.done));
  value.Set("gone", Napi::Number::New(env, tally.gone));
  value.Set("failed", Napi::Number::New(env, tally.failed));
  if (tally.error != 0) value.Set("error", errno_error(env, tally.text, -tally.error).Value());
  deferred.Resolve(value);
}

/// `work(table)` with an open table.
template <typename Work>
Napi::Value with_table(const Napi::CallbackInfo& info, std::size_t entries, Work work) {
  const auto opened = [entries, work = std::move(work)] {
    conntrack::Table table;
    if (const int error = table.open(); error != 0) return Tally{error, "socket(AF_NETLINK)", 0, 0, static_cast<std::uint32_t>(entries)};
    return work(table);
  };
  return in_pool(info.Env(), opened, settle_tally);
}

Napi::Value remove_flows_value(const Napi::CallbackInfo& info) {
  auto entries = rows_argument(info);
  const std::size_t count = entries.size();
  return with_table(info, count, [entries = std::move(entries)](conntrack::Table& table) { return table.remove(entries); });
}

Napi::Value mark_flows_value(const Napi::CallbackInfo& info) {
  auto entries = rows_argument(info);
  const std::size_t count = entries.size();
  const std::uint32_t mark = number_argument_of(info, 1, "mark");
  const std::uint32_t mask = number_argument_of(info, 2, "mask");
  return with_table(info, count, [entries = std::move(entries), mark, mask](conntrack::Table& table) { return table.mark(entries, mark, mask); });
}

Napi::Value challenge_flows_value(const Napi::CallbackInfo& info) {
  const auto work = [entries = rows_argument(info), mark = number_argument_of(info, 1, "mark")] { return net::challenge(entries, mark); };
  return in_pool(info.Env(), work, [](const Napi::Promise::Deferred& deferred, const net::Challenged& result) {
    const Napi::Env env = deferred.Env();
    const auto value = Napi::Object::New(env);
    value.Set("sent", Napi::Number::New(env, result.sent));
    value.Set("failed", Napi::Number::New(env, result.failed));
    if (result.error != 0) value.Set("error", errno_error(env, result.text, -result.error).Value());
    deferred.Resolve(value);
  });
}

}  // namespace

void set_conntrack_functions(Napi::Env env, Napi::Object exports) {
  const auto set = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    exports.Set(name, Napi::Function::New(env, function, name));
  };
  set("listFlows", list_flows_value);
  set("removeFlows", remove_flows_value);
  set("markFlows", mark_flows_value);
  set("challengeFlows", challenge_flows_value);
}

}  // namespace holdfast::binding
