/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of backends in shared objects: files and folders that are loaded, and
 * those that are refused. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vyre/vyre.h"

#include "support/check.h"
#include "support/driver.h"

/* --- files -----------------------------------------------------------------*/

static char folder[] = "/tmp/vyre-plugins-XXXXXX";

static const char *path_of(const char *name) {
  static char paths[8][320];
  static unsigned next;
  char *out = paths[next++ % 8];
  snprintf(out, sizeof paths[0], "%s/%s", folder, name);
  return out;
}

/* Copies the first @p max bytes of a plugin of the build to the folder. */
static const char *copy_part(const char *plugin, const char *name, size_t max) {
  char from[512], bytes[4096];
  const char *to = path_of(name);
  snprintf(from, sizeof from, "%s/%s.so", VYRE_PLUGINS_DIR, plugin);
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  CHECK(in && out);
  size_t size;
  while (max > 0 &&
         (size = fread(bytes, 1, max < sizeof bytes ? max : sizeof bytes, in)) >
             0) {
    CHECK(fwrite(bytes, 1, size, out) == size);
    max -= size;
  }
  fclose(in);
  CHECK(fclose(out) == 0);
  CHECK(chmod(to, 0755) == 0);
  return to;
}

static const char *copy(const char *plugin) {
  char name[64];
  snprintf(name, sizeof name, "%s.so", plugin);
  return copy_part(plugin, name, SIZE_MAX);
}

/* Makes an empty folder that only this user can write. */
static void begin(void) {
  snprintf(folder, sizeof folder, "/tmp/vyre-plugins-XXXXXX");
  CHECK(mkdtemp(folder));
}

static void end(void) {
  DIR *listing = opendir(folder);
  const struct dirent *entry;
  CHECK(listing);
  while ((entry = readdir(listing)) != NULL) {
    if (entry->d_name[0] != '.') (void)unlink(path_of(entry->d_name));
  }
  closedir(listing);
  CHECK(rmdir(folder) == 0);
}

/* --- contexts --------------------------------------------------------------*/

static vyre_context *context_of(const char *paths) {
  const vyre_context_options options = {.cache_directory = "",
                                        .trace_file = "",
                                        .faults = "",
                                        .backend_options = "",
                                        .backend_path = paths};
  vyre_context *context;
  vyre_status st = {0};
  CHECK_OK(vyre_context_create(&options, &context, &st), st);
  return context;
}

/* Finds the entry of a name, or of a file whose path ends so. */
static bool find(vyre_context *context, const char *what,
                 vyre_backend_info *out) {
  size_t length = strlen(what);
  for (size_t i = 0; vyre_backend_info_at(context, i, out); i++) {
    size_t size = strlen(out->origin);
    if ((length > 0 && strcmp(out->name, what) == 0) ||
        (size >= length && (length > 0 || size == 0) &&
         strcmp(out->origin + size - length, what) == 0)) {
      return true;
    }
  }
  return false;
}

static void check_loaded(vyre_context *context, const char *what) {
  vyre_backend_info info;
  CHECK(find(context, what, &info));
  if (!info.is_loaded) printf("    %s: %s\n", what, info.message);
  CHECK(info.is_loaded);
}

static void check_refused(vyre_context *context, const char *what,
                          const char *message) {
  vyre_backend_info info;
  CHECK(find(context, what, &info));
  CHECK(!info.is_loaded && info.code != VYRE_OK && info.fix[0]);
  CHECK_HAS(info.message, message);
}

static void check_opens(vyre_context *context, const char *name) {
  vyre_device *device;
  vyre_status st = {0};
  CHECK_OK(vyre_device_open(context, name, &device, &st), st);
  vyre_device_release(device);
}

/* --- a file that calls the library while it is loaded ---------------------- */

static const char *called_path;
static unsigned calls, called_refusals;

static void use_default_context(void) {
  vyre_device *device;
  vyre_status st = {0};
  calls++;
  if (vyre_device_open(NULL, "ref", &device, &st) == VYRE_INVALID_ARGUMENT &&
      !device && st.fix[0] && strstr(st.message, "default context")) {
    called_refusals++;
  }
}

static void load_again(void) {
  calls++;
  /* A context of its own works, without the file that is being loaded. */
  vyre_context *context = context_of("");
  check_opens(context, "ref");
  vyre_context_release(context);
  if (calls > 1) return;
  context = context_of(called_path);
  check_refused(context, "calls.so", "while that was being loaded");
  called_refusals++;
  vyre_context_release(context);
}

static void set_call(void (*call)(void)) {
  char address[32];
  calls = called_refusals = 0;
  snprintf(address, sizeof address, "%llx",
           (unsigned long long)(uintptr_t)call);
  CHECK(setenv("VYRE_STUB_CALL", address, 1) == 0);
}

TEST(a_file_that_uses_the_default_context_while_it_is_loaded_is_refused) {
  vyre_device *device;
  vyre_status st = {0};
  begin();
  CHECK(setenv("VYRE_BACKEND_PATH", copy("calls"), 1) == 0);
  set_call(use_default_context);
  (void)alarm(30); /* it used to block for ever */
  CHECK_OK(vyre_device_open(NULL, "calls", &device, &st), st);
  CHECK(calls == 2 && called_refusals == 2);
  vyre_device_release(device);
  CHECK_OK(vyre_device_open(NULL, "ref", &device, &st), st);
  vyre_device_release(device);
  (void)alarm(0);
  CHECK(unsetenv("VYRE_BACKEND_PATH") == 0);
  CHECK(unsetenv("VYRE_STUB_CALL") == 0);
  end();
}

TEST(a_file_that_loads_files_while_it_is_loaded_is_refused) {
  begin();
  called_path = copy("calls");
  set_call(load_again);
  (void)alarm(30);
  vyre_context *context = context_of(called_path);
  (void)alarm(0);
  check_loaded(context, "calls");
  check_opens(context, "calls");
  CHECK(calls == 2 && called_refusals == 1);
  vyre_context_release(context);
  CHECK(unsetenv("VYRE_STUB_CALL") == 0);
  end();
}

/* --- tests -----------------------------------------------------------------*/

TEST(a_file_or_a_folder_adds_backends) {
  char both[700];
  begin();
  const char *stub = copy("stub");
  copy("other");
  vyre_context *context = context_of(stub);
  check_loaded(context, "stub");
  check_opens(context, "stub");
  vyre_context_release(context);
  context = context_of(folder);
  check_opens(context, "stub");
  check_opens(context, "other");
  vyre_context_release(context);
  snprintf(both, sizeof both, ":%s::%s:", path_of("other.so"),
           path_of("stub.so"));
  context = context_of(both);
  check_opens(context, "stub");
  check_opens(context, "other");
  vyre_context_release(context);
  end();
}

TEST(the_environment_names_files_unless_the_program_does) {
  vyre_backend_info info;
  begin();
  CHECK(setenv("VYRE_BACKEND_PATH", copy("stub"), 1) == 0);
  vyre_context *context = context_of(NULL);
  check_opens(context, "stub");
  vyre_context_release(context);
  context = context_of("");
  CHECK(!find(context, "stub", &info));
  vyre_context_release(context);
  CHECK(unsetenv("VYRE_BACKEND_PATH") == 0);
  end();
}

TEST(one_broken_file_does_not_stop_the_others) {
  static const struct {
    const char *plugin, *message;
  } cases[] = {{"old_abi", "has version 99 with"},
               {"small", "with 64 bytes; expected version"},
               {"bad_name", "invalid name of a backend: 'Bad name'"},
               {"no_symbol", "has no symbol vyre_backend_plugin"},
               {"no_table", "returns no table"},
               {"twin", "already has a backend 'stub'"}};
  enum { COUNT = sizeof cases / sizeof cases[0] };
  begin();
  copy("stub");
  copy("other");
  for (size_t i = 0; i < COUNT; i++) copy(cases[i].plugin);
  vyre_context *context = context_of(folder);
  for (size_t i = 0; i < COUNT; i++) {
    char file[64];
    snprintf(file, sizeof file, "/%s.so", cases[i].plugin);
    check_refused(context, file, cases[i].message);
  }
  check_opens(context, "stub");
  check_opens(context, "other");
  check_opens(context, "ref");
  vyre_context_release(context);
  end();
}

TEST(a_truncated_file_is_refused) {
  static const size_t sizes[] = {0, 1, 63, 64, 100, 600, 4096, 8192};
  struct stat s;
  begin();
  CHECK(stat(copy("stub"), &s) == 0);
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    if (sizes[i] >= (size_t)s.st_size / 2) break;
    vyre_context *context = context_of(copy_part("stub", "part.so", sizes[i]));
    check_refused(context, "/part.so", "not a shared object");
    vyre_context_release(context);
  }
  FILE *file = fopen(path_of("text.so"), "w");
  CHECK(file);
  for (int i = 0; i < 100; i++) fputs("not an object\n", file);
  CHECK(fclose(file) == 0 && chmod(path_of("text.so"), 0755) == 0);
  vyre_context *context = context_of(folder);
  check_refused(context, "/text.so", "its header is another one");
  check_opens(context, "stub");
  vyre_context_release(context);
  end();
}

TEST(a_path_that_cannot_be_read_is_refused) {
  char long_path[5000];
  memset(long_path, 'x', sizeof long_path);
  long_path[sizeof long_path - 1] = '\0';
  vyre_context *context = context_of("/no/such/file.so");
  check_refused(context, "/no/such/file.so", "cannot be read: No such file");
  vyre_context_release(context);
  context = context_of(long_path);
  check_refused(context, "", "a backend path has 4999 bytes");
  vyre_context_release(context);
  context = context_of("/dev/null");
  check_refused(context, "/dev/null", "it is not a file");
  vyre_context_release(context);
}

TEST(what_other_users_can_write_is_refused) {
  static const mode_t modes[] = {0775, 0757, 0777, 0666};
  begin();
  const char *stub = copy("stub");
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
    CHECK(chmod(stub, modes[i]) == 0);
    vyre_context *context = context_of(stub);
    check_refused(context, "/stub.so", "the file");
    check_refused(context, "/stub.so", "writable by other users");
    vyre_context_release(context);
  }
  CHECK(chmod(stub, 0755) == 0);
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
    CHECK(chmod(folder, modes[i]) == 0);
    vyre_context *context = context_of(stub);
    check_refused(context, "/stub.so", "the folder");
    vyre_context_release(context);
    context = context_of(folder);
    check_refused(context, strrchr(folder, '/'), "the folder");
    vyre_context_release(context);
  }
  CHECK(chmod(folder, 0700) == 0);
  if (geteuid() == 0) { /* only root can give a file away */
    CHECK(chown(stub, 65534, 65534) == 0);
    vyre_context *context = context_of(stub);
    check_refused(context, "/stub.so", "belongs to user 65534");
    vyre_context_release(context);
    CHECK(chown(stub, 0, 0) == 0);
  }
  vyre_context *context = context_of(stub);
  check_opens(context, "stub");
  vyre_context_release(context);
  end();
}

TEST(links_are_followed_to_a_file_that_is_checked) {
  begin();
  copy_part("stub", "stub.so.1", SIZE_MAX);
  CHECK(symlink("stub.so.1", path_of("stub.so")) == 0);
  CHECK(symlink("nowhere", path_of("broken.so")) == 0);
  CHECK(symlink(".", path_of("self.so")) == 0);
  vyre_context *context = context_of(folder);
  check_opens(context, "stub");
  check_refused(context, "/broken.so", "cannot be read");
  check_refused(context, "/self.so", ""); /* a folder, in a folder of all */
  vyre_context_release(context);
  CHECK(chmod(path_of("stub.so.1"), 0777) == 0);
  context = context_of(folder);
  check_refused(context, "/stub.so", "writable by other users");
  vyre_context_release(context);
  context = context_of(path_of("stub.so"));
  check_refused(context, "/stub.so", "writable by other users");
  vyre_context_release(context);
  end();
}

static atomic_bool stops_swapping;

/* Points a link to a file that is allowed and to one that is not, in turn. */
static void *swap_links(void *self) {
  while (!atomic_load(&stops_swapping)) {
    (void)unlink(path_of("next"));
    if (symlink("bad.so.1", path_of("next")) != 0) return NULL;
    (void)rename(path_of("next"), path_of("link.so"));
    (void)unlink(path_of("next"));
    if (symlink("good.so.1", path_of("next")) != 0) return NULL;
    (void)rename(path_of("next"), path_of("link.so"));
  }
  return self;
}

/* "other" is writable by all: it must never be loaded, whenever the link is
 * changed. */
TEST(a_link_that_is_swapped_never_loads_another_file) {
  char link[320];
  pthread_t thread;
  void *result;
  unsigned loads = 0, refusals = 0;
  begin();
  copy_part("stub", "good.so.1", SIZE_MAX);
  copy_part("other", "bad.so.1", SIZE_MAX);
  CHECK(chmod(path_of("bad.so.1"), 0777) == 0);
  CHECK(symlink("good.so.1", path_of("link.so")) == 0);
  snprintf(link, sizeof link, "%s/link.so", folder);
  atomic_store(&stops_swapping, false);
  CHECK(pthread_create(&thread, NULL, swap_links, &loads) == 0);
  for (int i = 0; i < 3000 || loads == 0 || refusals == 0; i++) {
    vyre_backend_info info;
    vyre_context *context = context_of(link);
    CHECK(!find(context, "other", &info));
    if (find(context, "stub", &info)) loads++;
    if (find(context, "/link.so", &info) && !info.is_loaded) refusals++;
    vyre_context_release(context);
    if (i == 100000) break;
  }
  atomic_store(&stops_swapping, true);
  CHECK(pthread_join(thread, &result) == 0 && result);
  CHECK(loads > 0 && refusals > 0);
  end();
}

/* Descriptors have the same number again and again, and the loader remembers
 * names. */
TEST(each_file_is_loaded_and_not_one_of_the_same_descriptor) {
  begin();
  copy("stub");
  copy("other");
  for (int i = 0; i < 3; i++) {
    vyre_context *context = context_of(path_of(i % 2 ? "other.so" : "stub.so"));
    vyre_backend_info info;
    check_loaded(context, i % 2 ? "other" : "stub");
    CHECK(!find(context, i % 2 ? "stub" : "other", &info));
    vyre_context_release(context);
  }
  end();
}

TEST(a_device_that_does_not_open_leaves_the_rest) {
  begin();
  copy("no_open");
  copy("no_load");
  copy("stub");
  vyre_context *context = context_of(folder);
  vyre_device *device;
  vyre_pipeline *pipeline;
  vyre_module *module;
  vyre_status st = {0};
  CHECK_FAILS(vyre_device_open(context, "no_open", &device, &st), st,
              VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE);
  CHECK_HAS(st.message, "backend 'no_open': the device has no power");
  CHECK_TEXT(st.fix, "plug it in");
  CHECK_OK(vyre_device_open(context, "no_load", &device, &st), st);
  CHECK_OK(vyre_module_parse("kernel k workgroup(1) { }", 25, "k",
                             (vyre_allocator){0}, &module, NULL, &st),
           st);
  CHECK_U64(vyre_pipeline_compile(device, vyre_module_kernel(module, 0), NULL,
                                  &pipeline, NULL, &st),
            VYRE_KERNEL_COMPILE_FAILED);
  CHECK_HAS(st.message, "backend 'no_load'");
  vyre_module_release(module);
  vyre_device_release(device);
  check_opens(context, "stub");
  check_opens(context, "ref");
  vyre_context_release(context);
  end();
}

/* Runs in a copy of this program that is set-uid. Returns its exit status. */
static int run_privileged(void) {
  vyre_backend_info info;
  const char *path = getenv("VYRE_PLUGIN_FILE");
  vyre_context *context = context_of(path); /* by the program */
  bool is_refused = find(context, "/stub.so", &info) && !info.is_loaded &&
                    strstr(info.message, "raised privileges");
  vyre_context_release(context);
  context = context_of(NULL); /* by the environment, which is ignored */
  bool is_ignored = !find(context, "/stub.so", &info);
  vyre_context_release(context);
  return is_refused && is_ignored ? 0 : 1;
}

TEST(a_privileged_process_loads_no_files) {
  char self[512];
  if (geteuid() != 0) return; /* only root can make such a program */
  ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
  CHECK(size > 0);
  self[size] = '\0';
  begin();
  CHECK(chmod(folder, 0755) == 0);
  copy("stub");
  char command[1200];
  snprintf(command, sizeof command, "cp '%s' '%s'", self, path_of("program"));
  CHECK(system(command) == 0);
  CHECK(chmod(path_of("program"), 04755) == 0);
  CHECK(setenv("VYRE_PLUGIN_FILE", path_of("stub.so"), 1) == 0);
  CHECK(setenv("VYRE_BACKEND_PATH", path_of("stub.so"), 1) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(2);
    execl(path_of("program"), "program", "--privileged", (char *)NULL);
    _exit(3);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
  CHECK_U64(WEXITSTATUS(status), 0);
  CHECK(unsetenv("VYRE_BACKEND_PATH") == 0);
  end();
}

static const test_case all_cases[] = {
    TEST_ENTRY(a_file_or_a_folder_adds_backends),
    TEST_ENTRY(the_environment_names_files_unless_the_program_does),
    TEST_ENTRY(one_broken_file_does_not_stop_the_others),
    TEST_ENTRY(a_truncated_file_is_refused),
    TEST_ENTRY(a_path_that_cannot_be_read_is_refused),
    TEST_ENTRY(what_other_users_can_write_is_refused),
    TEST_ENTRY(links_are_followed_to_a_file_that_is_checked),
    TEST_ENTRY(a_link_that_is_swapped_never_loads_another_file),
    TEST_ENTRY(each_file_is_loaded_and_not_one_of_the_same_descriptor),
    TEST_ENTRY(a_device_that_does_not_open_leaves_the_rest),
    TEST_ENTRY(
        a_file_that_uses_the_default_context_while_it_is_loaded_is_refused),
    TEST_ENTRY(a_file_that_loads_files_while_it_is_loaded_is_refused),
    TEST_ENTRY(a_privileged_process_loads_no_files)};

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "--privileged") == 0) return run_privileged();
  return run_tests(all_cases, sizeof all_cases / sizeof all_cases[0],
                   argc > 1 ? argv[1] : NULL);
}
