// A library without the function that makes it a module.
extern "C" int offload_something_else();

extern "C" int offload_something_else() {
  return 0;
}
