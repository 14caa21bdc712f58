/* SPDX-License-Identifier: Apache-2.0 */
/* Reads facts about the machine, but not its name.  Room: train. */
#include "train/history/machine.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "base/os/cpu.h"
#include "train/history/json_text.h"

/* Reads the CPU's name from /proc/cpuinfo; writes "" if the file does not name it, as on most ARM machines. */
static void read_cpu(char *out, size_t bytes) {
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    out[0] = '\0';
    while (file && !out[0] && fgets(line, sizeof line, file)) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !value) continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(out, bytes, "%.*s", (int)strcspn(value, "\n"), value);
    }
    if (file) fclose(file);
}

bool leati_machine_add(json_t *object) {
    char text[sizeof(struct utsname)];
    struct utsname names;
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    read_cpu(text, sizeof text);
    bool complete = !text[0] || leati_json_add(object, "cpu", leati_json_text(text));
    complete = complete &&
               leati_json_add(object, "instruction_set",
                              leati_json_text(leati_cpu_isa_name(leati_cpu_best_isa()))) &&
               leati_json_add(object, "cores", json_integer(leati_core_count()));
    if (complete && pages > 0 && page_bytes > 0)
        complete = leati_json_add(object, "memory_bytes", json_integer((json_int_t)pages * page_bytes));
    if (!complete || uname(&names) != 0) return complete;
    snprintf(text, sizeof text, "%s %s %s", names.sysname, names.release, names.machine);
    return leati_json_add(object, "system", leati_json_text(text));
}
