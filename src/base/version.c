/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/version.h"

uint32_t vyre_version(void) {
  return VYRE_VERSION_MAJOR * 1000000u + VYRE_VERSION_MINOR * 1000u +
         VYRE_VERSION_PATCH;
}

const char *vyre_version_string(void) {
  return VYRE_VERSION_STRING;
}
