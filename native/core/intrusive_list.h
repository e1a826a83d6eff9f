#pragma once

namespace holdfast {

/// A place in an IntrusiveList. Leaves it when destroyed.
class ListHook {
 public:
  ListHook() noexcept : previous_(this), next_(this) {}
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;
  ~ListHook() { unlink(); }

  void unlink() noexcept {
    previous_->next_ = next_;
    next_->previous_ = previous_;
    previous_ = next_ = this;
  }
  bool linked() const noexcept { return next_ != this; }

 private:
  template <typename Hook>
  friend class IntrusiveList;

  ListHook* previous_;
  ListHook* next_;
};

/// Links objects that live elsewhere, through a base class that derives from ListHook: no memory of its own, O(1) removal.
template <typename Hook>
class IntrusiveList {
 public:
  void push_back(Hook& item) noexcept {
    ListHook& hook = item;
    hook.unlink();
    hook.previous_ = head_.previous_;
    hook.next_ = &head_;
    head_.previous_->next_ = &hook;
    head_.previous_ = &hook;
  }
  bool empty() const noexcept { return !head_.linked(); }
  /// Of a list that is not empty.
  Hook& front() noexcept { return static_cast<Hook&>(*head_.next_); }

  /// `visit` may unlink the item that it is given, and no other.
  template <typename Visit>
  void for_each(Visit visit) {
    for (ListHook* hook = head_.next_; hook != &head_;) {
      ListHook* next = hook->next_;
      visit(static_cast<Hook&>(*hook));
      hook = next;
    }
  }

 private:
  ListHook head_;
};

}  // namespace holdfast
