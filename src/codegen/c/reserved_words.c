/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lists names that a generated file must not define: words of C, names in its
 * headers, and names of the file itself. */
#include <string.h>

#include "codegen/c/internal.h"

/* Keywords, names that the file uses, and macros. A variable may have the name
 * of a library function that the file does not call. */
static const char taken_anywhere[] =
    " alignas alignof asm auto bool break case char complex const constexpr "
    "continue default do double else enum extern false float for fortran goto "
    "i386 if "
    "imaginary inline int linux long noreturn nullptr register restrict return "
    "short "
    "signed sizeof static static_assert struct switch thread_local true "
    "typedef typeof typeof_unqual union unix unsigned void volatile while "
    "NULL INFINITY NAN DECIMAL_DIG math_errhandling memset memcpy "
    "signgam "
    "fabsf fabs sqrtf sqrt fmaf fma floorf floor ceilf ceil truncf trunc rintf "
    "rint roundf round fmin fmax "
    "launch here groups scratch memory first_group group_count group "
    "next_group strip strip_end done status fuel "
    "local_x local_y local_z group_x group_y group_z grid_x grid_y grid_z "
    "first_x first_y first_z global_x global_y global_z ";

/* Prefixes of macros in the headers; they have no lower-case letters. */
static const char *const macro_prefixes[] = {
    "FLT_",  "DBL_",     "LDBL_", "FP_",    "M_",    "MATH_", "INT", "UINT",
    "SIZE_", "PTRDIFF_", "SIG_",  "WCHAR_", "WINT_", "HUGE_", "DEC"};

/* Functions that compilers treat as built-in. Names that differ only by an
 * ending in suffixes[] are listed once. */
static const char taken_functions[] =
    " main abort abs acos acosh acospi aligned_alloc asin asinh asinpi atan "
    "atan2 atan2pi atanh atanpi bcmp bcopy bzero cabs cacos cacosh calloc "
    "canonicalize carg casin casinh catan catanh cbrt ccos ccosh ceil cexp "
    "cimag clog clog10 compoundn conj copysign cos cosh cospi cpow cproj creal "
    "csin csinh csqrt ctan ctanh dcgettext dgettext drem erf erfc execl execle "
    "execlp execv execve execvp exit exp exp10 exp10m1 exp2 exp2m1 "
    "explicit_bzero expm1 fabs fdim feclearexcept fegetexceptflag fegetround "
    "feraiseexcept fesetexceptflag fesetround fetestexcept ffs ffsl finite "
    "floor fma fmax fmaximum fmaximum_mag fmaximum_mag_num fmaximum_num "
    "fmaxmag fmin fminimum fminimum_mag fminimum_mag_num fminimum_num fminmag "
    "fmod fopen fork fpclassify fprintf fputc fputs fread free frexp fromfp "
    "fromfpx fscanf fwrite gamma getpayload gettext hypot ilogb imaxabs index "
    "isalnum isalpha isascii isblank iscanonical iscntrl isdigit iseqsig "
    "isfinite isgraph isgreater isgreaterequal isinf isless islessequal "
    "islessgreater islower isnan isnormal isprint ispunct issignaling isspace "
    "issubnormal isunordered isupper iswalnum iswalpha iswblank iswcntrl "
    "iswdigit iswgraph iswlower iswprint iswpunct iswspace iswupper iswxdigit "
    "isxdigit iszero j0 j1 jn labs ldexp lgamma llabs llogb llrint llround log "
    "log10 log10p1 log1p log2 log2p1 logb logp1 lrint lround malloc memalign "
    "memalignment memccpy memchr memcmp memmem memmove mempcpy memset_explicit "
    "modf nan nearbyint nextafter nextdown nexttoward nextup offsetof "
    "posix_memalign pow pow10 pown powr printf putc putchar puts realloc "
    "remainder remquo rindex rint rootn round roundeven rsqrt scalb scalbln "
    "scalbn scanf setpayload setpayloadsig signbit significand sin "
    "sincos sinh sinpi snprintf sprintf sqrt sscanf stpcpy stpncpy strcasecmp "
    "strcat strchr strchrnul strcmp strcoll strcpy strcspn strdup strerror "
    "strfmon strftime strlcat strlcpy strlen strncasecmp strncat strncmp "
    "strncpy strndup strnlen strpbrk strrchr strsep strsignal strspn strstr "
    "strto strtod strtok strtoll strtoul strtoull strxfrm tan tanh tanpi "
    "tgamma toascii tolower totalorder totalordermag toupper towlower towupper "
    "trunc ufromfp ufromfpx unreachable vfork vfprintf vfscanf vprintf vscanf "
    "vsnprintf vsprintf vsscanf wcschr wcscmp wcslen wcsncmp wmemchr wmemcmp "
    "wmemcpy wmemmove y0 y1 yn ";

/* All other C11 names with external linkage. A kernel of that name would
 * replace the library function in the program that links the file. */
static const char taken_external[] =
    " asctime at_quick_exit atexit atof atoi atol atoll bsearch btowc c16rtomb "
    "c32rtomb call_once clearerr clock cnd_broadcast cnd_destroy cnd_init "
    "cnd_signal cnd_timedwait cnd_wait ctime difftime div errno fclose "
    "fegetenv feholdexcept feof ferror fesetenv feupdateenv fflush fgetc "
    "fgetpos fgets fgetwc fgetws fputwc fputws freopen fseek fsetpos ftell "
    "fwide fwprintf fwscanf getc getchar getenv gets getwc getwchar gmtime "
    "imaxdiv iswctype ldiv lldiv localeconv localtime longjmp mblen mbrlen "
    "mbrtoc16 mbrtoc32 mbrtowc mbsinit mbsrtowcs mbstowcs mbtowc mktime "
    "mtx_destroy mtx_init mtx_lock mtx_timedlock mtx_trylock mtx_unlock perror "
    "putwc putwchar qsort quick_exit raise rand remove rename rewind setbuf "
    "setjmp setlocale setvbuf signal srand stderr stdin stdout strtoimax "
    "strtoumax swprintf swscanf system thrd_create thrd_current thrd_detach "
    "thrd_equal thrd_exit thrd_join thrd_sleep thrd_yield time timespec_get "
    "tmpfile tmpnam towctrans tss_create tss_delete tss_get tss_set ungetc "
    "ungetwc vfwprintf vfwscanf vswprintf vswscanf vwprintf vwscanf wcrtomb "
    "wcscat wcscoll wcscpy wcscspn wcsftime wcsncat wcsncpy wcspbrk wcsrchr "
    "wcsrtombs wcsspn wcsstr wcstod wcstof wcstoimax wcstok wcstol wcstold "
    "wcstoll wcstombs wcstoul wcstoull wcstoumax wcsxfrm wctob wctomb wctrans "
    "wctype wmemset wprintf wscanf ";

static const char *const suffixes[] = {"f",   "l",    "f32",      "f32x",
                                       "f64", "ld",   "f64x",     "_r",
                                       "_l",  "f128", "_unlocked"};

/* C23 operations that round to a narrower type, such as fadd, dmull,
 * f32subf64. */
static const char *const narrow_prefixes[] = {"f",    "d",   "f32",
                                              "f32x", "f64", "f64x"};
static const char narrow_operations[] = " add sub mul div fma sqrt ";

static bool contains_word(const char *words, const char *name, size_t length) {
  char padded[C_NAME_SIZE + 2];
  if (length == 0 || length >= C_NAME_SIZE) return false;
  padded[0] = padded[length + 1] = ' ';
  memcpy(padded + 1, name, length);
  padded[length + 2] = '\0';
  return strstr(words, padded) != NULL;
}

/* Returns the length of the name without the ending; 0 if it has another. */
static size_t without(const char *name, size_t length, const char *ending) {
  size_t tail = strlen(ending);
  if (length <= tail || memcmp(name + length - tail, ending, tail) != 0) {
    return 0;
  }
  return length - tail;
}

static bool is_macro(const char *name) {
  if (strpbrk(name, "abcdefghijklmnopqrstuvwxyz")) return false;
  for (size_t i = 0; i < sizeof macro_prefixes / sizeof *macro_prefixes; i++) {
    if (strncmp(name, macro_prefixes[i], strlen(macro_prefixes[i])) == 0) {
      return true;
    }
  }
  return strncmp(name, "VYRE_", 5) == 0; /* macros of the generated file */
}

bool c_is_reserved(const char *name) {
  size_t length = strlen(name);
  return contains_word(taken_anywhere, name, length) || is_macro(name) ||
         without(name, length, "_t") != 0; /* types of the headers */
}

static bool is_stem(const char *name, size_t length) {
  if (contains_word(taken_functions, name, length)) return true;
  for (size_t i = 0; i < sizeof narrow_prefixes / sizeof *narrow_prefixes;
       i++) {
    size_t head = strlen(narrow_prefixes[i]);
    if (length > head && memcmp(name, narrow_prefixes[i], head) == 0 &&
        contains_word(narrow_operations, name + head, length - head)) {
      return true;
    }
  }
  return false;
}

/* Also accepts two endings: lgammaf_r. */
bool c_is_reserved_function(const char *name) {
  const size_t count = sizeof suffixes / sizeof *suffixes;
  size_t length = strlen(name);
  if (contains_word(taken_external, name, length)) return true;
  if (is_stem(name, length)) return true;
  for (size_t i = 0; i < count; i++) {
    size_t stem = without(name, length, suffixes[i]);
    if (stem && is_stem(name, stem)) return true;
    for (size_t j = 0; stem && j < count; j++) {
      size_t inner = without(name, stem, suffixes[j]);
      if (inner && is_stem(name, inner)) return true;
    }
  }
  return false;
}
