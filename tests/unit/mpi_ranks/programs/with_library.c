/* A program with a shared library of its own, found by its run path. */
#include <stdio.h>
int count_calls(void);
int main(void) {
  printf("counted %d\n", count_calls());
  return 0;
}
