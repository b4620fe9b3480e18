// The host side of floor.c: sends COUNT requests over the FIFO pair, each after a pause of REST milliseconds, and prints the
// time of each answer in nanoseconds.
// usage: ask IN OUT COMMAND COUNT REST
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

int main(int argc, char **argv) {
  if (argc != 6) return 2;
  int in = open(argv[1], O_WRONLY), out = open(argv[2], O_RDONLY);
  if (in < 0 || out < 0) return 3;
  const char line[2] = {argv[3][0], '\n'};
  for (int left = atoi(argv[4]); left > 0; left--) {
    char answer[3];
    usleep(atoi(argv[5]) * 1000);
    long started = now_ns();
    if (write(in, line, 2) != 2) return 4;
    for (int got = 0; got < 3;) {
      ssize_t count = read(out, answer + got, 3 - got);
      if (count <= 0) return 5;
      got += count;
    }
    long took = now_ns() - started;
    if (answer[0] != 'o') return 6;
    printf("%ld\n", took);
  }
  return 0;
}
