/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names that mean something to a C compiler, to the headers that an emitted file
 * includes, or to the file itself. */
#include <string.h>

#include "emit/c_internal.h"

/* Words of C, what is called or named by the file, and macros. A variable may
 * have the name of a library function that the file does not call. */
static const char taken_anywhere[] =
    " alignas alignof asm auto bool break case char complex const continue "
    "default do double else enum extern false float for fortran goto i386 if "
    "imaginary inline int linux long noreturn register restrict return short "
    "signed sizeof static static_assert struct switch thread_local true "
    "typedef typeof union unix unsigned void volatile while "
    "NULL INFINITY NAN DECIMAL_DIG math_errhandling memset memcpy "
    "fabsf fabs sqrtf sqrt fmaf fma floorf floor ceilf ceil truncf trunc rintf "
    "rint roundf round fmin fmax "
    "launch here groups scratch memory first_group group_count group "
    "next_group strip strip_end done status fuel "
    "local_x local_y local_z group_x group_y group_z grid_x grid_y grid_z "
    "first_x first_y first_z global_x global_y global_z ";

/* How macros of the headers begin; they have no small letters. */
static const char *const macro_prefixes[] = {
    "FLT_", "DBL_",  "LDBL_",    "FP_",  "M_",     "MATH_", "INT",
    "UINT", "SIZE_", "PTRDIFF_", "SIG_", "WCHAR_", "WINT_", "HUGE_"};

/* A function may not have these: compilers know what they are. Those that
 * differ by an ending of suffixes[] only are here once. */
static const char taken_functions[] =
    " main abort abs acos acosh aligned_alloc asin asinh atan atan2 atanh bcmp "
    "bcopy bzero cabs cacos cacosh calloc carg casin casinh catan catanh cbrt "
    "ccos ccosh ceil cexp cimag clog clog10 conj copysign cos cosh cpow cproj "
    "creal csin csinh csqrt ctan ctanh dcgettext dgettext drem erf erfc execl "
    "execle execlp execv execve execvp exit exp exp10 exp2 explicit_bzero "
    "expm1 fabs fdim feclearexcept fegetexceptflag fegetround feraiseexcept "
    "fesetexceptflag fesetround fetestexcept ffs ffsl finite floor fma fmax "
    "fmin fmod fopen fork fpclassify fputc fputs fprintf fread free frexp "
    "fscanf fwrite gamma gettext hypot ilogb imaxabs index isalnum isalpha "
    "isascii isblank iscntrl isdigit isfinite isgraph isgreater isgreaterequal "
    "isinf isless islessequal islessgreater islower isnan isnormal isprint "
    "ispunct isspace isunordered isupper iswalnum iswalpha iswblank iswcntrl "
    "iswdigit iswgraph iswlower iswprint iswpunct iswspace iswupper iswxdigit "
    "isxdigit j0 j1 jn labs ldexp lgamma llabs llrint llround log log10 log1p "
    "log2 logb lrint lround malloc memalign memccpy memchr memcmp memmove "
    "mempcpy modf nan nearbyint nextafter nexttoward offsetof posix_memalign "
    "pow pow10 printf putc putchar puts realloc remainder remquo rindex rint "
    "round roundeven scalb scalbln scalbn scanf signbit signgam significand "
    "sin sincos sinh snprintf sprintf sqrt sscanf stpcpy stpncpy strcasecmp "
    "strcat strchr strcmp strcoll strcpy strcspn strdup strerror strfmon "
    "strftime strlen strncasecmp strncat strncmp strncpy strndup strnlen "
    "strpbrk strrchr strsep strsignal strspn strstr strtod strto strtok "
    "strtoll strtoul strtoull strxfrm tan tanh tgamma toascii tolower toupper "
    "towlower towupper trunc vfork vfprintf vfscanf vprintf vscanf vsnprintf "
    "vsprintf vsscanf wcschr wcscmp wcslen wcsncmp wmemchr wmemcmp wmemcpy "
    "wmemmove y0 y1 yn ";

static const char *const suffixes[] = {"f",   "l",    "f32",      "f32x",
                                       "f64", "ld",   "f64x",     "_r",
                                       "_l",  "f128", "_unlocked"};

static bool has_word(const char *words, const char *name, size_t length) {
  char padded[C_NAME_ROOM + 2];
  if (length == 0 || length >= C_NAME_ROOM) return false;
  padded[0] = padded[length + 1] = ' ';
  memcpy(padded + 1, name, length);
  padded[length + 2] = '\0';
  return strstr(words, padded) != NULL;
}

/* How many characters are left without the ending; 0: it has another. */
static size_t without(const char *name, size_t length, const char *ending) {
  size_t tail = strlen(ending);
  if (length <= tail || strcmp(name + length - tail, ending) != 0) return 0;
  return length - tail;
}

static bool is_macro(const char *name) {
  if (strpbrk(name, "abcdefghijklmnopqrstuvwxyz")) return false;
  for (size_t i = 0; i < sizeof macro_prefixes / sizeof *macro_prefixes; i++) {
    if (strncmp(name, macro_prefixes[i], strlen(macro_prefixes[i])) == 0) {
      return true;
    }
  }
  return strncmp(name, "VYRE_", 5) == 0; /* ours */
}

bool c_is_word(const char *name) {
  size_t length = strlen(name);
  return has_word(taken_anywhere, name, length) || is_macro(name) ||
         without(name, length, "_t") != 0; /* types of the headers */
}

bool c_is_function(const char *name) {
  size_t length = strlen(name);
  if (has_word(taken_functions, name, length)) return true;
  for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
    size_t stem = without(name, length, suffixes[i]);
    if (has_word(taken_functions, name, stem)) return true;
  }
  return false;
}
