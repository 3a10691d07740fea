/* A library with a variable. */
int count_calls(void) {
  static int calls;
  return ++calls;
}
