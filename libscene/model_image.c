// PNG pictures in and out, through libpng; the only file that knows it.
#include "libscene/model_internal.h"
#include "libscene/render.h"

#include <png.h>
#include <string.h>

enum { MOST_PIXELS = 1 << 26 };

fem_status model_image_read(scene_image *image, const void *bytes, size_t size) {
    png_image png = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&png, bytes, size))
        return fem_fail(FEM_BAD_INPUT, "the picture cannot be read: %s", png.message);
    png.format = PNG_FORMAT_RGBA;
    if ((double)png.width * (double)png.height > MOST_PIXELS || png.width == 0 || png.height == 0) {
        png_image_free(&png);
        return fem_fail(FEM_BAD_INPUT, "the picture has more than 67 million pixels, or none");
    }
    uint8_t *pixels = fem_alloc((size_t)png.width * png.height, 4);
    if (!pixels) {
        png_image_free(&png);
        return fem_fail(FEM_NO_MEMORY, "no memory for a picture of %u x %u", png.width, png.height);
    }
    if (!png_image_finish_read(&png, NULL, pixels, 0, NULL)) {
        fem_free(pixels);
        return fem_fail(FEM_BAD_INPUT, "the picture cannot be read: %s", png.message);
    }
    *image = (scene_image){.width = (int)png.width, .height = (int)png.height, .pixels = pixels};
    return FEM_OK;
}

fem_status scene_image_write(const scene_image *image, const char *path) {
    fem_status       status = FEM_OK;
    fem_file        *file = NULL;
    char            *bytes = NULL;
    png_image        png = {.version = PNG_IMAGE_VERSION,
                            .width = (png_uint_32)image->width,
                            .height = (png_uint_32)image->height,
                            .format = PNG_FORMAT_RGBA};
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
    bytes = fem_alloc(size, 1);
    if (!bytes) return fem_fail(FEM_NO_MEMORY, "%s: no memory for the picture", path);
    if (!png_image_write_to_memory(&png, bytes, &size, 0, image->pixels, 0, NULL)) {
        status = fem_fail(FEM_IO, "%s: cannot be made: %s", path, png.message);
        goto done;
    }
    FEM_TRY(fem_file_create(&file, path));
    fem_file_put(file, bytes, size);
    status = fem_file_commit(file);
done:
    fem_free(bytes);
    return status;
}

void scene_image_destroy(scene_image *image) {
    fem_free(image->pixels);
    *image = (scene_image){0};
}
