#include "codegen/cache.h"
#include "ir/base/file.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

static uint64_t enabled_states(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* The brand, then family and model, then the words of features; nothing that differs from core to core. */
const char *tg_host_cpu(Arena *arena) {
    uint32_t words[12] = {0}, a = 0, b = 0, c = 0, d = 0;
    Str text = tg_str(arena);
    for (uint32_t i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002 + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]))
            memset(words, 0, sizeof words);
    tg_str_printf(&text, "%.48s", (const char *)words);
    while (text.length > 0 && text.text[text.length - 1] == ' ')
        text.text[--text.length] = '\0';
    __get_cpuid(1, &a, &b, &c, &d);
    tg_str_printf(&text, " %x %x %x", a, c, d);
    bool saves_vectors = c >> 27 & 1;
    for (uint32_t leaf = 0; leaf < 2; leaf++)
        if (__get_cpuid_count(7, leaf, &a, &b, &c, &d))
            tg_str_printf(&text, " %x %x %x %x", a, b, c, d);
    if (__get_cpuid(0x80000001, &a, &b, &c, &d))
        tg_str_printf(&text, " %x %x", c, d);
    tg_str_printf(&text, " %llx", saves_vectors ? (unsigned long long)enabled_states() : 0ull);
    return text.text;
}
#else
/* The lines of the first processor that name its kind and its features. */
const char *tg_host_cpu(Arena *arena) {
    char *text;
    size_t length;
    const char *why;
    if (tg_file_read(arena, "/proc/cpuinfo", &text, &length, &why) != TG_OK)
        return "unknown";
    char *blank = strstr(text, "\n\n");
    if (blank)
        *blank = '\0';
    Str kept = tg_str(arena);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (strncmp(line, "CPU", 3) == 0 || strncmp(line, "Features", 8) == 0)
            tg_str_printf(&kept, "%s;", line);
    return kept.text;
}
#endif
