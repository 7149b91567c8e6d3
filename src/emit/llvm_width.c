/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How many invocations a vector has. */
#include "emit/llvm_internal.h"

uint32_t ll_choose_width(const vyre__low_kernel *kernel, uint32_t lanes) {
  uint32_t width = 2 * (lanes ? lanes : 8);
  uint32_t size = vyre__low_group_size(kernel);
  if (width > 16) width = 16;
  while (width > 4 && width >= 2 * size) width /= 2;
  if (size < 3) width = 1;
  return width;
}
