/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests every rule of the language: its bad example breaks this rule only,
 * its good example breaks none. Faults that only show in a run (check_test.c)
 * break no rule in either example. */
#include "vyre/diagnostic.h"
#include "vyre/module.h"
#include "vyre/validate.h"

#include "support/check.h"

/* Collects the diagnostics of a file: those of the parser, or if there are
 * none, those of validation. */
static void examine(const char *text, vyre_diagnostics *found) {
  vyre_status st = {0};
  vyre_module *module;
  vyre_code code = vyre_module_parse(text, strlen(text), "example.vyre",
                                     (vyre_allocator){0}, &module, found, &st);
  if (code != VYRE_OK) {
    CHECK(code == VYRE_INVALID_PROGRAM && st.code == code && st.fix[0]);
    CHECK(found->count > 0);
    return;
  }
  for (size_t i = 0; i < vyre_module_kernel_count(module); i++) {
    vyre_status failure = {0};
    code =
        vyre_program_validate(vyre_module_kernel(module, i), found, &failure);
    CHECK(code == VYRE_OK || (failure.code == code && failure.fix[0]));
    CHECK((code == VYRE_OK) == (found->count == 0));
  }
  vyre_module_release(module);
}

static bool only_breaks(const char *text, const char *rule) {
  vyre_diagnostics found = {0};
  examine(text, &found);
  bool good = rule ? found.count > 0 : found.count == 0;
  for (size_t i = 0; i < found.count; i++) {
    const vyre_diagnostic *it = &found.items[i];
    bool wanted = rule && strcmp(it->rule, rule) == 0;
    good = good && wanted && it->message[0] && it->fix[0] && it->length > 0;
    if (!wanted) {
      printf("    %u:%u: %s (%s)\n", it->line, it->column, it->message,
             it->rule);
    }
  }
  vyre_diagnostics_deinit(&found);
  return good;
}

TEST(every_bad_example_breaks_its_rule_only) {
  size_t count, wrong = 0;
  const vyre_rule *rules = vyre_rules(&count);
  CHECK(count > 0);
  for (size_t i = 0; i < count; i++) {
    bool of_language = rules[i].id[0] == 'V';
    if (only_breaks(rules[i].bad_example, of_language ? rules[i].id : NULL))
      continue;
    printf("    the bad example of %s does not break it alone:\n%s\n",
           rules[i].id, rules[i].bad_example);
    wrong++;
  }
  CHECK_U64(wrong, 0);
}

TEST(no_good_example_breaks_a_rule) {
  size_t count, wrong = 0;
  const vyre_rule *rules = vyre_rules(&count);
  for (size_t i = 0; i < count; i++) {
    if (only_breaks(rules[i].good_example, NULL)) continue;
    printf("    the good example of %s is not good:\n%s\n", rules[i].id,
           rules[i].good_example);
    wrong++;
  }
  CHECK_U64(wrong, 0);
}

TEST(rules_are_in_order_and_complete) {
  size_t count;
  const vyre_rule *rules = vyre_rules(&count);
  for (size_t i = 0; i < count; i++) {
    CHECK(rules[i].id[0] != 'V' || strlen(rules[i].id) == 4);
    CHECK(i == 0 || strcmp(rules[i - 1].id, rules[i].id) < 0);
    CHECK(rules[i].title[0] && rules[i].explanation[0]);
  }
}

TEST(a_rule_is_found_in_either_case) {
  CHECK_TEXT(vyre_rule_find("V060")->id, "V060");
  CHECK_TEXT(vyre_rule_find("v060")->id, "V060");
  CHECK_TEXT(vyre_rule_find("race")->id, "race");
  CHECK_TEXT(vyre_rule_find("Out_of_bounds")->id, "out_of_bounds");
  CHECK(!vyre_rule_find("V999") && !vyre_rule_find("") && !vyre_rule_find("V"));
  CHECK(!vyre_rule_find(NULL) && !vyre_rule_find("060"));
}

TEST_MAIN(TEST_ENTRY(every_bad_example_breaks_its_rule_only),
          TEST_ENTRY(no_good_example_breaks_a_rule),
          TEST_ENTRY(rules_are_in_order_and_complete),
          TEST_ENTRY(a_rule_is_found_in_either_case))
