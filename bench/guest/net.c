// The server and the client of the network benchmark.
//   net serve ADDRESS              echoes on port 7001, sends without end on 7002, and counts on 7003
//   net connect ADDRESS COUNT      microseconds of each connect with the echo of one byte, one per line
//   net down|up ADDRESS BYTES      milliseconds until so many bytes have arrived at the receiver
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ECHO = 7001, SOURCE = 7002, SINK = 7003, PIECE = 256 * 1024 };

static char piece[PIECE];

static double now_us(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1e6 + at.tv_nsec / 1e3;
}

static void check(int holds, const char *what) {
  if (holds) return;
  perror(what);
  exit(1);
}

static struct sockaddr_in address_of(const char *text, int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  check(inet_pton(AF_INET, text, &address.sin_addr) == 1, text);
  return address;
}

static int dial(const char *text, int port) {
  struct sockaddr_in address = address_of(text, port);
  int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
  check(fd >= 0, "socket");
  check(connect(fd, (struct sockaddr *)&address, sizeof address) == 0, "connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

static void answer(int fd, int port) {
  ssize_t length;
  if (port == SOURCE) {
    while (write(fd, piece, PIECE) > 0) continue;
    return;
  }
  uint64_t total = 0;
  while ((length = read(fd, piece, PIECE)) > 0) {
    total += length;
    if (port == ECHO && write(fd, piece, length) != length) return;
  }
  if (port == SINK && dprintf(fd, "%llu\n", (unsigned long long)total) < 0) return;
}

static void serve(const char *text, int port) {
  struct sockaddr_in address = address_of(text, port);
  int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  check(bind(listener, (struct sockaddr *)&address, sizeof address) == 0, "bind");
  check(listen(listener, 4096) == 0, "listen");
  if (fork() > 0) return;
  signal(SIGCHLD, SIG_IGN);
  for (;;) {
    int fd = accept(listener, NULL, NULL);
    if (fd < 0) continue;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (fork() == 0) {
      answer(fd, port);
      exit(0);
    }
    close(fd);
  }
}

static void connect_and_echo(const char *text, long count) {
  for (long k = 0; k < count; k++) {
    double began = now_us();
    int fd = dial(text, ECHO);
    check(write(fd, "x", 1) == 1 && read(fd, piece, 1) == 1, "echo");
    printf("%.1f\n", now_us() - began);
    close(fd);
  }
}

static void transfer(const char *text, int is_down, uint64_t bytes) {
  int fd = dial(text, is_down ? SOURCE : SINK);
  double began = now_us();
  for (uint64_t left = bytes; left > 0;) {
    size_t wanted = left < PIECE ? left : PIECE;
    ssize_t length = is_down ? read(fd, piece, wanted) : write(fd, piece, wanted);
    check(length > 0, "transfer");
    left -= length;
  }
  if (!is_down) {
    shutdown(fd, SHUT_WR);
    check(read(fd, piece, PIECE) > 0, "count");
    check(strtoull(piece, NULL, 10) == bytes, "a different number arrived");
  }
  printf("%.3f\n", (now_us() - began) / 1e3);
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN);
  if (argc == 3 && strcmp(argv[1], "serve") == 0) {
    for (int port = ECHO; port <= SINK; port++) serve(argv[2], port);
    printf("ready\n");
    fflush(stdout);
    pause();
  } else if (argc == 4 && strcmp(argv[1], "connect") == 0) {
    connect_and_echo(argv[2], atol(argv[3]));
  } else if (argc == 4) {
    transfer(argv[2], strcmp(argv[1], "down") == 0, strtoull(argv[3], NULL, 10));
  } else {
    return 2;
  }
  return 0;
}
