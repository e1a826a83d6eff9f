#pragma once

#include <napi.h>

#include <memory>

#include "nft_watcher.h"

namespace holdfast::binding {

/// `new NftWatcher(ownPort, onChange)`, `pause()`, `resume()`, `close()`; src/adapters/dataplane/nft-addon.ts has the types. Does not keep the process
/// alive; its thread ends with `close`, with the environment or when it is collected.
class NftWatcherObject final : public Napi::ObjectWrap<NftWatcherObject> {
 public:
  static Napi::Function define(Napi::Env env);

  explicit NftWatcherObject(const Napi::CallbackInfo& info);
  ~NftWatcherObject() override;

 private:
  Napi::Value pause(const Napi::CallbackInfo& info);
  Napi::Value resume(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);

  void notify() noexcept;
  static void at_environment_end(void* self) noexcept;
  void shut_down() noexcept;

  Napi::ThreadSafeFunction calls_;
  /// Shared with the call that takes, so that one on its way finds nothing after `close`.
  std::shared_ptr<nft::Watcher> watcher_;
};

}  // namespace holdfast::binding
