/* Preloaded into the program by interruptions_test.py: every reading of the wall clock is a year before or after the last one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/time.h>
#include <time.h>

static atomic_long looks;

/* Seconds to add to this reading. */
static time_t jump(void) { return (time_t)(atomic_fetch_add(&looks, 1) % 2 == 0 ? 365 : -365) * 24 * 3600; }

int clock_gettime(clockid_t clock, struct timespec* at) {
  static int (*next)(clockid_t, struct timespec*);
  if (next == NULL) next = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  int status = next(clock, at);
  if (status == 0 && clock == CLOCK_REALTIME) at->tv_sec += jump();
  return status;
}

int gettimeofday(struct timeval* restrict at, void* restrict zone) {
  struct timespec now;
  (void)zone;
  int status = clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return status;
}

time_t time(time_t* at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at != NULL) *at = now.tv_sec;
  return now.tv_sec;
}
