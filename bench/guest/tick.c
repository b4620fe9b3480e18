// Writes a line every two milliseconds, so that a reader sees when it stood still.
#include <time.h>
#include <unistd.h>

int main(void) {
  const struct timespec rest = {.tv_nsec = 2000000};
  while (write(1, ".\n", 2) == 2) nanosleep(&rest, NULL);
  return 1;
}
