/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Peer of the thread pool: a parallel loop in OpenMP. The suite builds this
 * file with several compilers, each into a library of its own. */
void peer_for(void (*piece)(void *self, long index), void *self, long count);

void peer_for(void (*piece)(void *self, long index), void *self, long count) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < count; i++) piece(self, i);
}
