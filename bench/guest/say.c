// Prints one line, to measure the time until the first byte arrives.
#include <unistd.h>

int main(void) { return write(1, "ready\n", 6) == 6 ? 0 : 1; }
