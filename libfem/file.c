// Whole files in, files out under a temporary name; both through gzip (RFC 1952) when the name ends in .gz.
// A file appears under its own name only when it is complete and on the disk: temporary name, fsync, rename, fsync of
// the folder. zlib takes its memory from fem_alloc, so that it is counted and can be made to fail like all other.
#include "libfem/fem.h"
#include "libfem/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { CHUNK = 1 << 16 };
static const size_t largest_file = (size_t)8 << 30; // 8 GiB, also after unpacking

static void *zlib_alloc(void *context, unsigned count, unsigned size) {
    (void)context;
    return fem_alloc(count, size);
}
static void zlib_free(void *context, void *memory) {
    (void)context;
    fem_free(memory);
}

bool fem_path_is_gz(const char *path) {
    size_t length = strlen(path);
    return length > 3 && strcasecmp(path + length - 3, ".gz") == 0;
}

bool fem_path_ends(const char *path, const char *ending) {
    size_t length = strlen(path) - (fem_path_is_gz(path) ? 3 : 0), tail = strlen(ending);
    return length > tail && strncasecmp(path + length - tail, ending, tail) == 0;
}

// ---- reading ---------------------------------------------------------------------------------------------------

// Bytes as they are on the disk, with a zero byte behind them.
static fem_status read_bytes(char **bytes, size_t *size, const char *path, size_t limit) {
    fem_status  status = FEM_OK;
    char       *data = NULL;
    size_t      capacity = 0, used = 0;
    struct stat about;
    int         descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return fem_fail(FEM_IO, "%s: cannot be opened: %s", path, strerror(errno));
    if (fstat(descriptor, &about) != 0 || !(S_ISREG(about.st_mode) || S_ISFIFO(about.st_mode))) {
        status = fem_fail(FEM_IO, "%s: is not a file", path);
        goto done;
    }
    if (about.st_size > 0 && (uintmax_t)about.st_size > limit) {
        status = fem_fail(FEM_BAD_INPUT, "%s: has %jd bytes, more than the %zu that are read", path,
                          (intmax_t)about.st_size, limit);
        goto done;
    }
    FEM_TRY(fem_grow((void **)&data, &capacity, (size_t)about.st_size + 2, 1)); // one for the zero, one to see the end
    for (;;) {
        ssize_t got = read(descriptor, data + used, capacity - 1 - used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            status = fem_fail(FEM_IO, "%s: cannot be read: %s", path, strerror(errno));
            goto done;
        }
        if (got == 0) break;
        used += (size_t)got;
        if (used > limit) {
            status = fem_fail(FEM_BAD_INPUT, "%s: has more than the %zu bytes that are read", path, limit);
            goto done;
        }
        if (used == capacity - 1) FEM_TRY(fem_grow((void **)&data, &capacity, capacity + CHUNK, 1));
    }
    data[used] = 0;
    *bytes = data;
    *size = used;
    data = NULL;
done:
    close(descriptor);
    fem_free(data);
    return status;
}

// Unpacks one gzip member after the other; all of the bytes must belong to a complete member.
static fem_status unpack(char **text, size_t *size, const char *path, const char *packed, size_t packed_size,
                         size_t limit) {
    fem_status status = FEM_OK;
    char      *data = NULL;
    size_t     capacity = 0, used = 0, eaten = 0;
    int        members = 0;
    bool       open_stream = false, complete = false;
    z_stream   stream = {.zalloc = zlib_alloc, .zfree = zlib_free};
    if (inflateInit2(&stream, 15 + 16) != Z_OK) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory to unpack it", path);
        goto done;
    }
    open_stream = true;
    // the last four bytes are the size modulo 2^32: a hint, which deflate's best ratio of 1032 bounds
    size_t hint = 0;
    if (packed_size >= 4)
        for (int i = 4; i > 0; i--) hint = hint << 8 | (unsigned char)packed[packed_size - 5 + (size_t)i];
    if (hint > 1032 * packed_size) hint = 1032 * packed_size;
    if (hint > limit) hint = limit;
    FEM_TRY(fem_grow((void **)&data, &capacity, hint + 2, 1));
    for (;;) {
        size_t left = packed_size - eaten, room = capacity - 1 - used;
        stream.next_in = (Bytef *)(uintptr_t)(packed + eaten);
        stream.avail_in = (uInt)(left < INT_MAX ? left : INT_MAX);
        stream.next_out = (Bytef *)(data + used);
        stream.avail_out = (uInt)(room < INT_MAX ? room : INT_MAX);
        uInt given = stream.avail_in, offered = stream.avail_out;
        int  code = inflate(&stream, Z_NO_FLUSH);
        eaten += given - stream.avail_in;
        used += offered - stream.avail_out;
        if (code == Z_MEM_ERROR) {
            status = fem_fail(FEM_NO_MEMORY, "%s: no memory to unpack it", path);
            goto done;
        }
        complete = code == Z_STREAM_END;
        if (complete) members++;
        if (complete && eaten == packed_size) break;
        if (complete && inflateReset(&stream) != Z_OK) code = Z_DATA_ERROR;
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
            status = fem_fail(FEM_BAD_INPUT, "%s: %s", path,
                              members > 0 && stream.total_out == 0 ? "has something behind the end of its gzip data"
                                                                   : "is not gzip data, or is damaged");
            goto done;
        }
        if (used > limit) {
            status = fem_fail(FEM_BAD_INPUT, "%s: unpacks to more than the %zu bytes that are read", path, limit);
            goto done;
        }
        if (used == capacity - 1)
            FEM_TRY(fem_grow((void **)&data, &capacity, capacity + CHUNK, 1));
        else if (!complete && eaten == packed_size) {
            status = fem_fail(FEM_BAD_INPUT, "%s: ends in the middle of its gzip data: it was cut short", path);
            goto done;
        }
    }
    data[used] = 0;
    *text = data;
    *size = used;
    data = NULL;
done:
    if (open_stream) inflateEnd(&stream);
    fem_free(data);
    return status;
}

fem_status fem_file_read_at_most(char **text, size_t *size, const char *path, size_t limit) {
    if (!fem_path_is_gz(path)) return read_bytes(text, size, path, limit);
    char      *packed = NULL;
    size_t     packed_size = 0;
    fem_status status = read_bytes(&packed, &packed_size, path, limit);
    if (status == FEM_OK) status = unpack(text, size, path, packed, packed_size, limit);
    fem_free(packed);
    return status;
}

// Two bytes a letter, as some programs on Windows write.
static bool is_wide(const char *text, size_t size) {
    return size >= 6 && ((memcmp(text, "\xff\xfe", 2) == 0 && text[2] && !text[3] && text[4] && !text[5]) ||
                         (memcmp(text, "\xfe\xff", 2) == 0 && !text[2] && text[3] && !text[4] && text[5]));
}

fem_status fem_file_read(char **text, size_t *size, const char *path) {
    fem_status status = fem_file_read_at_most(text, size, path, largest_file);
    if (status != FEM_OK || !is_wide(*text, *size)) return status;
    fem_free(*text);
    *text = NULL;
    return fem_fail(FEM_BAD_INPUT, "%s: is UTF-16 text, expected UTF-8: save it again as plain text", path);
}

// ---- writing ---------------------------------------------------------------------------------------------------

struct fem_file {
    char      *path, *temporary;
    int        descriptor;
    bool       packed;
    fem_status status;       // of the first failure
    char       message[512]; // and what it said
    z_stream   stream;
    size_t     used; // bytes in buffer
    char       buffer[CHUNK];
    char       squeezed[CHUNK];
};

static void note_failure(fem_file *file, fem_status status, const char *what, const char *why) {
    if (file->status != FEM_OK) return;
    file->status = status;
    snprintf(file->message, sizeof file->message, "%.400s: %s%s", file->path, what, why);
}

static void write_bytes(fem_file *file, const char *bytes, size_t size) {
    while (size > 0 && file->status == FEM_OK) {
        ssize_t done = write(file->descriptor, bytes, size);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) {
            note_failure(file, FEM_IO, "cannot be written: ", strerror(errno));
            return;
        }
        bytes += done;
        size -= (size_t)done;
    }
}

static void drain(fem_file *file, const char *bytes, size_t size, bool last) {
    if (!file->packed) {
        write_bytes(file, bytes, size);
        return;
    }
    do { // at most a gigabyte a time: zlib counts with unsigned
        size_t part = size < (size_t)1 << 30 ? size : (size_t)1 << 30;
        file->stream.next_in = (Bytef *)(uintptr_t)bytes;
        file->stream.avail_in = (uInt)part;
        bytes += part;
        size -= part;
        do {
            file->stream.next_out = (Bytef *)file->squeezed;
            file->stream.avail_out = CHUNK;
            deflate(&file->stream, last && size == 0 ? Z_FINISH : Z_NO_FLUSH);
            write_bytes(file, file->squeezed, CHUNK - file->stream.avail_out);
        } while (file->stream.avail_out == 0 && file->status == FEM_OK);
    } while (size > 0 && file->status == FEM_OK);
}

// What a symbolic link says, from its own folder; false when `path` is none.
static bool follow_link(char path[PATH_MAX]) {
    char    target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target);
    if (length <= 0 || length == sizeof target) return false;
    const char *slash = strrchr(path, '/');
    size_t      folder = slash && target[0] != '/' ? (size_t)(slash - path) + 1 : 0;
    if (folder + (size_t)length >= PATH_MAX) return false;
    memcpy(path + folder, target, (size_t)length);
    path[folder + (size_t)length] = 0;
    return true;
}

// The name that is written in the end: symbolic links are followed, so that they stay, also to where nothing is yet. A
// file that is there must be one that could be written: renaming would replace a protected one.
static fem_status final_path(char **path, const char *wanted) {
    enum { MOST_LINKS = 40 };
    struct stat about;
    char        resolved[PATH_MAX];
    if (strlen(wanted) >= sizeof resolved)
        return fem_fail(FEM_IO, "%.100s...: cannot be created: %s", wanted, strerror(ENAMETOOLONG));
    memcpy(resolved, wanted, strlen(wanted) + 1);
    for (int links = 0; follow_link(resolved); links++)
        if (links == MOST_LINKS) return fem_fail(FEM_IO, "%s: cannot be created: %s", wanted, strerror(ELOOP));
    if (stat(wanted, &about) == 0) {
        if (!S_ISREG(about.st_mode)) return fem_fail(FEM_IO, "%s: is there and is not a file", wanted);
        if (access(wanted, W_OK) != 0)
            return fem_fail(FEM_IO, "%s: is there and cannot be written: %s", wanted, strerror(errno));
    }
    *path = fem_copy_string(resolved);
    return *path ? FEM_OK : fem_fail(FEM_NO_MEMORY, "no memory for the name of a file");
}

fem_status fem_file_create(fem_file **created, const char *path) {
    static atomic_uint counter;
    fem_status         status = FEM_OK;
    fem_file          *file = fem_calloc(1, sizeof *file);
    if (!file) return fem_fail(FEM_NO_MEMORY, "%s: no memory to write it", path);
    file->descriptor = -1;
    FEM_TRY(final_path(&file->path, path));
    size_t room = strlen(file->path) + 64;
    file->temporary = fem_calloc(room, 1);
    if (!file->temporary) {
        status = fem_fail(FEM_NO_MEMORY, "%s: no memory to write it", path);
        goto done;
    }
    do {
        snprintf(file->temporary, room, "%s.%ld-%u.part", file->path, (long)getpid(), atomic_fetch_add(&counter, 1));
        file->descriptor = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (file->descriptor < 0 && errno == EEXIST);
    if (file->descriptor < 0) {
        status = fem_fail(FEM_IO, "%s: cannot be created: %s", path, strerror(errno));
        goto done;
    }
    if (fem_path_is_gz(path)) {
        file->stream = (z_stream){.zalloc = zlib_alloc, .zfree = zlib_free};
        if (deflateInit2(&file->stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
            status = fem_fail(FEM_NO_MEMORY, "%s: no memory to pack it", path);
            goto done;
        }
        file->packed = true;
    }
    *created = file;
    file = NULL;
done:
    fem_file_abandon(file);
    return status;
}

fem_status fem_file_try(const char *path) {
    fem_file  *file = NULL;
    fem_status status = fem_file_create(&file, path);
    fem_file_abandon(file);
    return status;
}

void fem_file_put(fem_file *file, const void *bytes, size_t size) {
    if (file->status != FEM_OK) return;
    if (size > CHUNK - file->used) {
        drain(file, file->buffer, file->used, false);
        file->used = 0;
    }
    if (size > CHUNK) {
        drain(file, bytes, size, false);
    } else if (size > 0) {
        memcpy(file->buffer + file->used, bytes, size);
        file->used += size;
    }
}

void fem_file_print(fem_file *file, const char *format, ...) {
    char    small[512], *text = small;
    va_list arguments;
    va_start(arguments, format);
    int length = fem_format(small, sizeof small, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof small) {
        text = fem_alloc((size_t)length + 1, 1);
        if (text) {
            va_start(arguments, format);
            length = fem_format(text, (size_t)length + 1, format, arguments);
            va_end(arguments);
        }
    }
    if (!text)
        note_failure(file, FEM_NO_MEMORY, "no memory for a line", "");
    else if (length < 0)
        note_failure(file, FEM_IO, "a line cannot be formatted", "");
    else
        fem_file_put(file, text, (size_t)length);
    if (text != small) fem_free(text);
}

// The rename is on the disk when its folder is; a file system that cannot sync folders has done what it can.
static void sync_folder(const char *path) {
    char        folder[PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    if (slash && (size_t)(slash - path) < sizeof folder - 1) {
        size_t length = slash == path ? 1 : (size_t)(slash - path);
        memcpy(folder, path, length);
        folder[length] = 0;
    }
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    fsync(descriptor);
    close(descriptor);
}

fem_status fem_file_commit(fem_file *file) {
    if (file->status == FEM_OK) drain(file, file->buffer, file->used, true);
    if (file->status == FEM_OK && fsync(file->descriptor) != 0 && errno != EINVAL && errno != ENOSYS)
        note_failure(file, FEM_IO, "cannot be written: ", strerror(errno));
    if (close(file->descriptor) != 0) note_failure(file, FEM_IO, "cannot be written: ", strerror(errno));
    file->descriptor = -1;
    if (file->status == FEM_OK && rename(file->temporary, file->path) != 0)
        note_failure(file, FEM_IO, "cannot be put in place: ", strerror(errno));
    fem_status status = file->status;
    if (status == FEM_OK) {
        sync_folder(file->path);
        file->temporary[0] = 0;
    } else {
        fem_fail(status, "%s", file->message);
    }
    fem_file_abandon(file);
    return status;
}

void fem_file_abandon(fem_file *file) {
    if (!file) return;
    if (file->packed) deflateEnd(&file->stream);
    if (file->descriptor >= 0) close(file->descriptor);
    if (file->temporary && file->temporary[0]) unlink(file->temporary);
    fem_free(file->temporary);
    fem_free(file->path);
    fem_free(file);
}
