#include "dns_object.h"

#include <algorithm>

#include "arguments.h"
#include "dns_codec.h"
#include "one_call.h"
#include "values.h"

namespace holdfast::binding {
namespace {

/// What JavaScript has not taken yet; as many may wait for an answer.
constexpr std::size_t kQuestionQueue = dns::Waiting::kMost;
constexpr double kMostThreads = 64;
/// A week, which is the longest TTL that anybody keeps (RFC 8767, 4).
constexpr double kLongestLifeMs = 604'800'000;
constexpr double kMostHandle = 9'007'199'254'740'991.0;

double number(std::uint64_t value) { return static_cast<double>(value); }

Napi::Object question_value(Napi::Env env, const dns::Question& question) {
  const Napi::Object value = Napi::Object::New(env);
  if (question.handle) value.Set("handle", number(*question.handle));
  Napi::Uint8Array query = Napi::Uint8Array::New(env, question.query.size());
  std::copy(question.query.begin(), question.query.end(), query.Data());
  value.Set("query", query);
  value.Set("address", question.client.host());
  value.Set("port", question.client.port);
  return value;
}

std::chrono::milliseconds duration_argument(const Napi::CallbackInfo& info, std::size_t index, const char* name) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(integer_argument(info, index, name, 0, kLongestLifeMs)));
}

/// Bit 0 is DO, bit 1 is CD.
int variant_argument(const Napi::CallbackInfo& info, std::size_t index) { return static_cast<int>(integer_argument(info, index, "variant", 0, 3)); }

}  // namespace

Napi::Function DnsObject::define(Napi::Env env) {
  return DefineClass(env, "DnsResponder",
                     {InstanceMethod<&DnsObject::listen>("listen"), InstanceMethod<&DnsObject::apply>("apply"),
                      InstanceMethod<&DnsObject::put_cached>("putCached"), InstanceMethod<&DnsObject::remove_cached>("removeCached"),
                      InstanceMethod<&DnsObject::clear_cached>("clearCached"), InstanceMethod<&DnsObject::answer>("answer"),
                      InstanceMethod<&DnsObject::stats>("stats"), InstanceMethod<&DnsObject::stop>("stop")});
}

DnsObject::DnsObject(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  const Napi::Env env = info.Env();
  const auto threads = static_cast<std::size_t>(integer_argument(info, 0, "threads", 1, kMostThreads));
  dns::QuestionSink sink;
  if (!info[1].IsUndefined()) {
    questions_ = Napi::ThreadSafeFunction::New(env, function_argument(info, 1, "onQuestion"), "holdfast dns questions", kQuestionQueue, 1);
    questions_.Unref(env);
    sink = [this](dns::Question question) { return emit(std::move(question)); };
  }
  try {
    responder_ = std::make_unique<dns::Responder>(threads, std::move(sink));
  } catch (const std::exception& error) {
    if (questions_) questions_.Release();
    throw Napi::Error::New(env, error.what());
  }
  // After the queue's own hook, so it runs before that: the threads are gone when the queue goes.
  napi_add_env_cleanup_hook(env, at_environment_end, this);
}

DnsObject::~DnsObject() {
  if (!responder_) return;
  napi_remove_env_cleanup_hook(Env(), at_environment_end, this);
  shut_down();
}

void DnsObject::at_environment_end(void* self) noexcept { static_cast<DnsObject*>(self)->shut_down(); }

void DnsObject::shut_down() noexcept {
  if (!responder_) return;
  responder_.reset();
  if (questions_) questions_.Release();
}

dns::Responder& DnsObject::running(Napi::Env env) {
  if (!responder_) throw Napi::Error::New(env, "the DNS threads are stopped");
  return *responder_;
}

bool DnsObject::emit(dns::Question question) {
  auto* data = new dns::Question(std::move(question));
  const auto call = [](Napi::Env env, Napi::Function on_question, dns::Question* raw) {
    const std::unique_ptr<dns::Question> owned(raw);
    if (on_question) on_question.Call({question_value(env, *owned)});
  };
  if (questions_.NonBlockingCall(data, call) == napi_ok) return true;
  delete data;
  return false;
}

/// `listen([address, port, ...])`.
Napi::Value DnsObject::listen(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  std::vector<net::SocketAddress> addresses;
  for (std::size_t i = 0; i < info.Length(); i += 2) {
    addresses.push_back(address_argument(info, i));
    addresses.back().port = static_cast<std::uint16_t>(integer_argument(info, i + 1, "port", 1, 65'535));
  }
  const std::vector<dns::ListenResult> results = running(env).listen(addresses);
  const Napi::Array values = Napi::Array::New(env, results.size());
  for (std::uint32_t i = 0; i < results.size(); ++i) {
    const Napi::Object value = Napi::Object::New(env);
    if (results[i].error) {
      value.Set("reason", reason_name(results[i].error->reason));
      value.Set("detail", results[i].error->detail);
    }
    values.Set(i, value);
  }
  return values;
}

Napi::Value DnsObject::apply(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  auto decoded = dns::decode_zone_delta(bytes_argument(info, 0, "delta"));
  if (const auto* error = std::get_if<dns::DecodeError>(&decoded)) throw Napi::TypeError::New(env, "delta: " + error->problem);
  dns::Responder& responder = running(env);
  const auto deferred = std::make_shared<Napi::Promise::Deferred>(env);
  responder.apply(std::get<std::shared_ptr<const dns::ZoneDelta>>(decoded), [deferred, call = OneCall(env, "holdfast dns apply")] {
    call([deferred](Napi::Env env) { deferred->Resolve(env.Undefined()); });
  });
  return deferred->Promise();
}

/// `putCached(message, variant, lifeMs, refreshAfterMs)`.
Napi::Value DnsObject::put_cached(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const int variant = variant_argument(info, 1);
  auto decoded = dns::decode_cache_entry(bytes_argument(info, 0, "message"), (variant & 1) != 0, (variant & 2) != 0);
  if (const auto* error = std::get_if<dns::DecodeError>(&decoded)) throw Napi::TypeError::New(env, "message: " + error->problem);
  const auto entry = std::get<std::shared_ptr<dns::CacheEntry>>(decoded);
  entry->put_at = net::Clock::now();
  entry->expires_at = entry->put_at + duration_argument(info, 2, "lifeMs");
  entry->refresh_at = entry->put_at + duration_argument(info, 3, "refreshAfterMs");
  running(env).put_cached(entry);
  return env.Undefined();
}

Napi::Value DnsObject::remove_cached(const Napi::CallbackInfo& info) {
  const int variant = variant_argument(info, 1);
  running(info.Env()).remove_cached(dns::decode_cache_key(bytes_argument(info, 0, "message"), (variant & 1) != 0, (variant & 2) != 0));
  return info.Env().Undefined();
}

Napi::Value DnsObject::clear_cached(const Napi::CallbackInfo& info) {
  running(info.Env()).clear_cached();
  return info.Env().Undefined();
}

/// `answer(handle, message?)`.
Napi::Value DnsObject::answer(const Napi::CallbackInfo& info) {
  const auto handle = static_cast<std::uint64_t>(integer_argument(info, 0, "handle", 0, kMostHandle));
  const std::span<const std::uint8_t> message = info[1].IsUndefined() ? std::span<const std::uint8_t>{} : bytes_argument(info, 1, "message");
  running(info.Env()).answer(handle, message);
  return info.Env().Undefined();
}

Napi::Value DnsObject::stats(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const dns::Stats stats = running(env).stats();
  const Napi::Object value = Napi::Object::New(env);
  Napi::Float64Array answered = Napi::Float64Array::New(env, dns::kTypeRows * dns::kRcodeColumns);
  double* at = answered.Data();
  for (const auto& row : stats.answered) {
    for (const std::uint64_t count : row) *at++ = number(count);
  }
  value.Set("answered", answered);
  value.Set("cacheHits", number(stats.cache_hits));
  value.Set("handedUp", number(stats.handed_up));
  value.Set("droppedQuestions", number(stats.dropped_questions));
  value.Set("droppedAnswers", number(stats.dropped_answers));
  value.Set("truncated", number(stats.truncated));
  value.Set("names", number(stats.names));
  value.Set("cached", number(stats.cached));
  value.Set("waiting", number(stats.waiting));
  value.Set("threads", number(stats.threads));
  return value;
}

/// The threads have nothing left but to return, so the join takes no time.
Napi::Value DnsObject::stop(const Napi::CallbackInfo& info) {
  if (responder_) napi_remove_env_cleanup_hook(info.Env(), at_environment_end, this);
  shut_down();
  return info.Env().Undefined();
}

}  // namespace holdfast::binding
