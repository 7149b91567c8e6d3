/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Settings of a pipeline that change its speed only: the workgroup size, and
 * tunable options of the backend. */
#ifndef VYRE_RUNTIME_TUNE_SETTINGS_H
#define VYRE_RUNTIME_TUNE_SETTINGS_H

#include "hal/backend.h"

typedef struct vyre__settings {
  uint32_t workgroup;             /* along x; 0: as the program declares */
  uint32_t tuned[VYRE__TUNABLES]; /* as in vyre_pipeline */
} vyre__settings;

enum { VYRE__SETTINGS_TEXT = 96 };

/* Convert settings to one number and back. 0: as compiled. */
uint64_t vyre__settings_pack(const vyre__settings *settings);
vyre__settings vyre__settings_unpack(uint64_t packed);

/* Writes "workgroup 128, width 8", or "as compiled". */
void vyre__settings_text(const vyre_device *device,
                         const vyre__settings *settings,
                         char out[VYRE__SETTINGS_TEXT]);

/* Returns true if the backend lists every value for this device, and the
 * workgroup is within its limits. */
bool vyre__settings_fit(const vyre_device *device,
                        const vyre__settings *settings);

#endif
