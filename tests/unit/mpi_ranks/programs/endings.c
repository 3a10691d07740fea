/* The ways in which a program ends. */
#define _GNU_SOURCE
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void brant_test_yield(void) __attribute__((weak));

static int variable = 1;

static void at_end(void) { puts("atexit"); }
static void with_code(int code, void* argument) { printf("on_exit %d%s\n", code, argument != NULL ? "?" : ""); }

static void* wait_for_ever(void* argument) {
  for (;;) pause();
  return argument;
}

static void fork_a_child(void) {
  int status = 0;
  pid_t child;
  fflush(stdout);
  child = fork();
  if (child == 0) _exit(9);
  waitpid(child, &status, 0);
  printf("child %d\n", WEXITSTATUS(status));
}

/* The number of the file that is mapped where the address lies. */
static void print_file_of(const char* what, const void* address) {
  char line[512];
  unsigned long first, last, inode;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    if (sscanf(line, "%lx-%lx %*s %*s %*s %lu", &first, &last, &inode) == 3 && (unsigned long)address >= first &&
        (unsigned long)address < last)
      printf("%s %lu\n", what, inode);
  }
  if (maps != NULL) fclose(maps);
}

/* Long options, and other ranks that parse theirs meanwhile. */
static void parse_long_options(int argc, char** argv) {
  static const struct option options[] = {
      {"alpha", no_argument, NULL, 'a'}, {"beta", required_argument, NULL, 'b'}, {0}};
  int option;
  while ((option = getopt_long(argc, argv, "vw", options, NULL)) != -1) {
    char seen[64];
    snprintf(seen, sizeof seen, "option %c %s at %d", option, optarg != NULL ? optarg : "-", optind);
    brant_test_yield();
    puts(seen);
  }
  printf("operands %s %s\n", argv[optind], argv[optind + 1]);
}

int main(int argc, char** argv) {
  pthread_t thread;
  const char* way = argc > 1 ? argv[1] : "";
  if (strcmp(way, "fork") == 0) {
    fork_a_child();
    return 0;
  }
  if (strcmp(way, "thread") == 0) return pthread_create(&thread, NULL, wait_for_ever, NULL);
  if (strcmp(way, "options") == 0) {
    parse_long_options(argc, argv);
    return 0;
  }
  if (strcmp(way, "files") == 0) {
    print_file_of("code", (const void*)&main);
    print_file_of("variables", &variable);
    return 0;
  }
  atexit(at_end);
  on_exit(with_code, NULL);
  if (strcmp(way, "exit") == 0) exit(6);
  if (strcmp(way, "_exit") == 0) _exit(6);
  if (strcmp(way, "_Exit") == 0) _Exit(6);
  if (strcmp(way, "pthread_exit") == 0) pthread_exit(NULL);
  quick_exit(6);
}
