// The minimal agent, as a baseline: answers lines on stdin and starts the program named by its first argument with only
// vfork, exec and wait.
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char read_command(void) {
  char command = 0;
  for (;;) {
    char byte;
    ssize_t count = read(0, &byte, 1);
    if (count == 0) _exit(0);
    if (count < 0) {
      // runsc passes its stdio as non-blocking.
      if (errno != EAGAIN && errno != EINTR) _exit(1);
      struct pollfd input = {.fd = 0, .events = POLLIN};
      poll(&input, 1, -1);
      continue;
    }
    if (byte == '\n') return command;
    if (command == 0) command = byte;
  }
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  for (;;) {
    char command = read_command();
    int status = 0;
    if (command == 't') {
      pid_t pid = vfork();
      if (pid == 0) {
        execv(argv[1], argv + 1);
        _exit(127);
      }
      if (pid < 0 || waitpid(pid, &status, 0) != pid) status = -1;
    }
    if (write(1, status == 0 ? "ok\n" : "no\n", 3) != 3) return 1;
  }
}
