// The program that exec is measured with: static, so that its own start costs as little as a program's start can.
int main(void) { return 0; }
