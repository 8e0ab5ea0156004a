// Pictures of a model without a GPU: a depth buffer, a sun with soft shadows, light of the sky with what hides it,
// ground, and the air between.
#ifndef LIMBER_RENDER_H
#define LIMBER_RENDER_H

#include "libscene/model.h"

fem_status scene_image_write(const scene_image *image, const char *path); // .png
void       scene_image_destroy(scene_image *image);                       // leaves it empty

#endif
