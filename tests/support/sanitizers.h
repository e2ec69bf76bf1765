// Whether this program is built with a sanitizer: it is many times slower then, and bounds on time are meaningless.
#pragma once

#if !defined(__has_feature)
#define __has_feature(feature) 0  // GCC, which defines macros instead
#endif

namespace specsim::tests {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) || \
    __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace specsim::tests
