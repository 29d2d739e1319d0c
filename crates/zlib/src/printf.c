/* gzprintf and gzvprintf: the functions of zlib whose arguments vary, which Rust cannot define. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct gzFile_s *gzFile;
int gzwrite(gzFile file, const void *bytes, unsigned length);

int terse_z_gzvprintf(gzFile file, const char *format, va_list arguments)
{
    char small[4096];
    va_list again;
    int length, written;
    va_copy(again, arguments);
    length = vsnprintf(small, sizeof small, format, arguments);
    if (length <= 0 || (size_t)length < sizeof small) {
        va_end(again);
        return length <= 0 ? 0 : gzwrite(file, small, (unsigned)length);
    }
    char *large = malloc((size_t)length + 1);
    if (large == NULL) {
        va_end(again);
        return -4; /* Z_MEM_ERROR */
    }
    vsnprintf(large, (size_t)length + 1, format, again);
    va_end(again);
    written = gzwrite(file, large, (unsigned)length);
    free(large);
    return written;
}

int terse_z_gzprintf(gzFile file, const char *format, ...)
{
    va_list arguments;
    int written;
    va_start(arguments, format);
    written = terse_z_gzvprintf(file, format, arguments);
    va_end(arguments);
    return written;
}
