/*
 * champions.h - who reigns: for each device class and problem class the kernel of the last promotion, with its history, from the
 * statements alone.
 */
#ifndef ATTEST_CHAMPIONS_H
#define ATTEST_CHAMPIONS_H

#include "base/session.h"

/* The class of this machine, such as "cpu-avx512bf16" (the best feature that is enabled); or of a GPU ("cuda", "cuda:1"; NULL: the
 * CPU), such as "nvidia-h200", and "nvidia-unknown" where there is none. */
void device_class(attest_context *context, const char *gpu, char *text, size_t size);

/* What a record says of the machine: {"class", "model", "cores", "features", "system", "memory_gb"}. New reference. */
json_t *machine_json(attest_context *context);

/* And of a GPU ("cuda", "cuda:1"): {"class", "model", "compute_capability", "multiprocessors", "memory_gb", "driver", "host": the
 * machine}. */
json_t *gpu_json(attest_context *context, const char *device);

/* The reigning kernel of a class; NULL if there is none. Borrowed from `statements` (see statements_load). */
const char *champion_of(const json_t *statements, const char *device, const char *problem_class);
/* The last champion that was another kernel than this one; NULL if there is none. */
const char *champion_before(const json_t *statements, const char *device, const char *problem_class, const char *kernel);
const char *champion_image(const json_t *statements, const char *device, const char *problem_class); /* digest of its image */

/* Everyone who reigns: [{"device", "problem_class", "kernel", "since", "model", "digest", "history": [{"kernel", "since",
 * "decision", "model", "digest" (of the statement), "image", "restored": bool}, ...]}, ...], ordered by device and class, the
 * history from the oldest to the reigning one. Statements with a problem do not count. New reference. */
json_t *champions_list(const json_t *statements);

/* Makes a kernel that reigned before reign again, wherever it did: appends one statement a device class (see statement_append). On
 * success `restored` gets what champions_list will say of the classes, as an array of {"device", "problem_class", "replaces"}. */
enum exit_code champion_restore(const char *evidence, const char *kernel, const char *key, json_t *restored, char *why,
                                size_t why_size);

/* The text of lib/champions.def; to be freed. Kernels that the library does not have are left out: the last one that it has reigns
 * there. */
char *champions_def(const json_t *champions, const json_t *statements);

#endif
