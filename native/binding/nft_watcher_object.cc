#include "nft_watcher_object.h"

#include <cerrno>

#include "arguments.h"
#include "call_back.h"
#include "errno_error.h"

namespace holdfast::binding {
namespace {

Napi::Object changes_value(Napi::Env env, const nft::Changes& changes) {
  const auto tables = Napi::Array::New(env, changes.tables.size());
  for (std::uint32_t i = 0; i < changes.tables.size(); ++i) {
    const nft::Change& change = changes.tables[i];
    const auto value = Napi::Object::New(env);
    value.Set("family", Napi::Number::New(env, change.family));
    value.Set("table", change.table);
    value.Set("port", Napi::Number::New(env, change.port));
    if (change.process != 0) value.Set("process", Napi::Number::New(env, change.process));
    if (!change.command.empty()) value.Set("command", change.command);
    tables.Set(i, value);
  }
  const auto value = Napi::Object::New(env);
  value.Set("tables", tables);
  value.Set("overrun", Napi::Boolean::New(env, changes.overrun));
  return value;
}

nft::Watcher& open(Napi::Env env, const std::shared_ptr<nft::Watcher>& watcher) {
  if (!watcher) throw errno_error(env, "the watcher is closed", EBADF);
  return *watcher;
}

}  // namespace

Napi::Function NftWatcherObject::define(Napi::Env env) {
  return DefineClass(env, "NftWatcher",
                     {InstanceMethod<&NftWatcherObject::pause>("pause"), InstanceMethod<&NftWatcherObject::resume>("resume"),
                      InstanceMethod<&NftWatcherObject::close>("close")});
}

NftWatcherObject::NftWatcherObject(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  const Napi::Env env = info.Env();
  const auto own_port = static_cast<std::uint32_t>(integer_argument(info, 0, "ownPort", 0, 4294967295.0));
  const Napi::Function on_change = function_argument(info, 1, "onChange");
  calls_ = Napi::ThreadSafeFunction::New(env, on_change, "holdfast rules", 0, 1);
  calls_.Unref(env);
  watcher_ = std::make_shared<nft::Watcher>([this] { notify(); });
  if (const int error = watcher_->start(own_port); error != 0) {
    watcher_.reset();
    calls_.Release();
    throw errno_error(env, "watch the ruleset", -error);
  }
  // After the queue's own hook, so it runs before that: the thread is gone when the queue goes.
  napi_add_env_cleanup_hook(env, at_environment_end, this);
}

NftWatcherObject::~NftWatcherObject() {
  if (!watcher_) return;
  napi_remove_env_cleanup_hook(Env(), at_environment_end, this);
  shut_down();
}

void NftWatcherObject::at_environment_end(void* self) noexcept { static_cast<NftWatcherObject*>(self)->shut_down(); }

void NftWatcherObject::shut_down() noexcept {
  if (!watcher_) return;
  watcher_->stop();
  watcher_.reset();
  calls_.Release();
}

/// On the watcher's thread, at most once until the changes are taken: the queue holds one call.
void NftWatcherObject::notify() noexcept {
  calls_.NonBlockingCall([weak = std::weak_ptr(watcher_)](Napi::Env env, Napi::Function on_change) {
    if (const auto watcher = weak.lock()) call_back(env, on_change, [&](Napi::Env now) { return changes_value(now, watcher->take()); });
  });
}

Napi::Value NftWatcherObject::pause(const Napi::CallbackInfo& info) {
  if (const int error = open(info.Env(), watcher_).pause(); error != 0) throw errno_error(info.Env(), "pause", -error);
  return info.Env().Undefined();
}

Napi::Value NftWatcherObject::resume(const Napi::CallbackInfo& info) {
  if (const int error = open(info.Env(), watcher_).resume(); error != 0) throw errno_error(info.Env(), "resume", -error);
  return info.Env().Undefined();
}

Napi::Value NftWatcherObject::close(const Napi::CallbackInfo& info) {
  if (watcher_) napi_remove_env_cleanup_hook(info.Env(), at_environment_end, this);
  shut_down();
  return info.Env().Undefined();
}

}  // namespace holdfast::binding
