/* Globals, statics of functions, thread-locals, functions of the end and grouped options: each rank has its own. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void brant_test_yield(void) __attribute__((weak));

static int started; /* by the constructor */
static int mine;    /* another number in each image */
int global = 7;
int zero[1000];
int* pointer = &global;
__thread int local_with_value = 11;
__thread int local_without;
__thread int* local_pointer = &global;

static void yield_turn(void) {
  if (brant_test_yield) brant_test_yield();
}

static int count(void) {
  static int calls = 0;
  return ++calls;
}

__attribute__((constructor)) static void begin(int argc, char** argv) {
  started = argc + (argv[argc] == NULL ? 100 : 0);
}
__attribute__((destructor)) static void end(void) {
  puts(global == mine + 1 ? "destructor right" : "wrong: destructor");
}

static void first_given(void) {
  yield_turn();
  puts(global == mine + 1 && local_without == mine + 2 ? "first_given right" : "wrong: first_given");
}
static void last_given(void) {
  global += 1;
  puts("last_given");
  exit(3); /* the rest of the functions still runs */
}

static int fail(const char* what) {
  printf("wrong: %s\n", what);
  return 1;
}

int main(int argc, char** argv, char** environment) {
  char seen[64] = "";
  int option, i;
  if (started != argc + 100) return fail("constructor");
  if (environment == NULL || environment != argv + argc + 1) return fail("environment");
  mine = (int)((size_t)&global >> 12 & 0xffff);
  if (pointer != &global || local_pointer != &global || global != 7) return fail("initial values");
  if (local_with_value != 11 || local_without != 0) return fail("thread-locals");
  global = mine;
  local_with_value = mine + 1;
  local_without = mine + 2;
  for (i = 0; i < 1000; ++i) zero[i] += mine;
  yield_turn();
  while ((option = getopt(argc, argv, "abcn:")) != -1) {
    size_t length = strlen(seen);
    if (optarg != NULL && option == 'n') {
      snprintf(seen + length, sizeof seen - length, "n=%s;", optarg);
    } else {
      snprintf(seen + length, sizeof seen - length, "%c;", option);
    }
    yield_turn();
  }
  if (argc > 1 && (strcmp(seen, "a;b;c;n=5;a;") != 0 || optind != argc - 2)) return fail(seen);
  if (argc > 1 && (strcmp(argv[optind], "one") != 0 || strcmp(argv[optind + 1], "two") != 0)) return fail("operands");
  argv[0][0] = 'X';
  for (i = 0; i < 3; ++i) {
    if (count() != i + 1) return fail("static of a function");
    yield_turn();
  }
  if (global != mine || local_with_value != mine + 1 || local_without != mine + 2) return fail("shared");
  for (i = 0; i < 1000; ++i)
    if (zero[i] != mine) return fail("shared array");
  atexit(first_given);
  atexit(last_given);
  printf("right\n");
  return 0;
}
