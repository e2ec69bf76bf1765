/* Preloaded into the program by faults_test.py: makes the N-th of some system calls fail.
 *
 * FAULT="CALL:ERRNO:N" or "CALL:ERRNO:N:always" (that call and all after it), CALL one of open, read, write, fsync, rename, ftruncate, flock.
 * CALL may also be end: when the N-th file NAME.part is created, the signal with number ERRNO is raised before open returns.
 * Only calls on files below FAULT_FOLDER count, so that libraries and the terminal are not affected. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls;

static int below(const char* path) {
  const char* folder = getenv("FAULT_FOLDER");
  return path != NULL && folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

static int file_below(int file) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return below(path);
}

/* Whether this call is one that fails; errno is set then. */
static int fails(const char* call, int counts) {
  const char* fault = getenv("FAULT");
  char wanted[32], rest[16] = "";
  int error = 0;
  long at = 0;
  if (!counts || fault == NULL || sscanf(fault, "%31[a-z]:%d:%ld:%15s", wanted, &error, &at, rest) < 3) return 0;
  if (strcmp(wanted, call) != 0) return 0;
  long number = atomic_fetch_add(&calls, 1) + 1;
  if (number != at && !(rest[0] == 'a' && number > at)) return 0;
  errno = error;
  return 1;
}

#define NEXT(type, name) \
  static type next;      \
  if (next == NULL) next = (type)dlsym(RTLD_NEXT, name)

static int opened(const char* name, const char* path, int flags, mode_t mode) {
  typedef int (*open_call)(const char*, int, ...);
  NEXT(open_call, "open");
  (void)name;
  if (fails("open", below(path))) return -1;
  int file = next(path, flags, mode);
  size_t length = path == NULL ? 0 : strlen(path);
  int pieces = file >= 0 && (flags & O_CREAT) != 0 && length > 5 && strcmp(path + length - 5, ".part") == 0;
  if (fails("end", pieces && below(path))) kill(getpid(), errno);
  return file;
}
int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  mode_t mode = va_arg(more, mode_t);
  va_end(more);
  return opened("open", path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  mode_t mode = va_arg(more, mode_t);
  va_end(more);
  return opened("open64", path, flags, mode);
}
ssize_t read(int file, void* to, size_t size) {
  typedef ssize_t (*read_call)(int, void*, size_t);
  NEXT(read_call, "read");
  if (fails("read", file_below(file))) return -1;
  return next(file, to, size);
}
ssize_t write(int file, const void* from, size_t size) {
  typedef ssize_t (*write_call)(int, const void*, size_t);
  NEXT(write_call, "write");
  if (fails("write", file_below(file))) return -1;
  return next(file, from, size);
}
int fsync(int file) {
  typedef int (*fsync_call)(int);
  NEXT(fsync_call, "fsync");
  if (fails("fsync", file_below(file))) return -1;
  return next(file);
}
int rename(const char* from, const char* to) {
  typedef int (*rename_call)(const char*, const char*);
  NEXT(rename_call, "rename");
  if (fails("rename", below(to))) return -1;
  return next(from, to);
}
int ftruncate(int file, off_t size) {
  typedef int (*truncate_call)(int, off_t);
  NEXT(truncate_call, "ftruncate");
  if (fails("ftruncate", file_below(file))) return -1;
  return next(file, size);
}
int ftruncate64(int file, off64_t size) { return ftruncate(file, (off_t)size); }
