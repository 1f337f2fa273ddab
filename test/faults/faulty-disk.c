/*
 * Loaded before libc, this fails the file operations of a process on chosen files, as a disk would: with an
 * error, or by the end of the process. The first three bytes of the file that FAULTY_DISK_CONTROL names say at
 * any time what a write, a sync and a read come to; FAULTY_DISK_FILES is the pattern of the file names.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WRITE, SYNC, READ, OPERATIONS };

/* The process ends, half-way through a write or right after a sync. Any other value but 0 is an error number. */
enum { GONE = 255 };

static volatile unsigned char *control;
static const char *files;

__attribute__((constructor)) static void prepare(void) {
  int fd = open(getenv("FAULTY_DISK_CONTROL"), O_RDONLY);
  control = mmap(NULL, OPERATIONS, PROT_READ, MAP_SHARED, fd, 0);
  files = getenv("FAULTY_DISK_FILES");
  if (fd < 0 || control == MAP_FAILED || files == NULL) abort();
  close(fd);
}

static int is_concerned(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  const char *slash = strrchr(path, '/');
  return slash != NULL && fnmatch(files, slash + 1, 0) == 0;
}

static int fault_of(int operation, int fd) {
  int fault = control[operation];
  return fault != 0 && is_concerned(fd) ? fault : 0;
}

static int fail(int fault) {
  if (fault == GONE) kill(getpid(), SIGKILL);
  errno = fault;
  return -1;
}

#define LIBC(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
  int fault = fault_of(WRITE, fd);
  if (fault == GONE) LIBC(pwrite64)(fd, bytes, count / 2, at);
  return fault ? fail(fault) : LIBC(pwrite64)(fd, bytes, count, at);
}

int ftruncate64(int fd, off64_t length) {
  int fault = fault_of(WRITE, fd);
  return fault ? fail(fault) : LIBC(ftruncate64)(fd, length);
}

int fsync(int fd) {
  int fault = fault_of(SYNC, fd);
  if (fault == GONE) LIBC(fsync)(fd);
  return fault ? fail(fault) : LIBC(fsync)(fd);
}

ssize_t pread64(int fd, void *bytes, size_t count, off64_t at) {
  int fault = fault_of(READ, fd);
  return fault ? fail(fault) : LIBC(pread64)(fd, bytes, count, at);
}
