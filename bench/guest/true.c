// The program for measuring exec: static, so that its own start costs as little as possible.
int main(void) { return 0; }
