/* Preloaded into the program by hostile_places_test.py: allocations fail from the NO_MEMORY-th request after the start of main() on.
 *
 * main() first sets the action of SIGPIPE; requests before that belong to the loader. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

static atomic_long left = -1; /* below 0: not counted yet */

static int ended(void) {
  long now = atomic_load(&left);
  if (now < 0) return 0;
  if (now > 0 && atomic_fetch_sub(&left, 1) > 1) return 0;
  atomic_store(&left, 0);
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t size) { return ended() ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return ended() ? NULL : __libc_calloc(count, size); }
void* realloc(void* old, size_t size) { return ended() ? NULL : __libc_realloc(old, size); }
void* aligned_alloc(size_t align, size_t size) { return ended() ? NULL : __libc_memalign(align, size); }

int posix_memalign(void** into, size_t align, size_t size) {
  if (ended()) return ENOMEM;
  *into = __libc_memalign(align, size);
  return *into == NULL ? ENOMEM : 0;
}

void (*signal(int number, void (*handler)(int)))(int) {
  static void (*(*next)(int, void (*)(int)))(int);
  if (next == NULL) next = (void (*(*)(int, void (*)(int)))(int))dlsym(RTLD_NEXT, "signal");
  const char* wanted = getenv("NO_MEMORY");
  if (number == SIGPIPE && wanted != NULL) atomic_store(&left, atol(wanted));
  return next(number, handler);
}
