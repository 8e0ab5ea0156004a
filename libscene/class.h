// A class: what is computed once for a part, kept on disk, and used by all its instances.
#ifndef LIMBER_SCENE_CLASS_H
#define LIMBER_SCENE_CLASS_H

#include "libscene/scene.h"

typedef struct scene_class {
    modes_basis         basis;
    cubature_polynomial polynomial; // SCENE_POLYNOMIAL
    double             *K0;         // SCENE_LINEAR: r x r
    cubature_linear     linear;     // of K0
    cubature_full      *full;       // SCENE_ALL_ELEMENTS
    cubature_forces     forces;     // of whichever of the three it is
    double             *M;          // r x r; NULL = identity
    bool                cached;     // read from the cache
    bool                kept;       // in the cache now
    double              seconds_modes, seconds_forces;
} scene_class;

// `body` is the part's and must outlive the class. `cache` is a folder, which is made, or NULL. What the user should
// know of a file there that was not what it should be is added to *notes, lines of text that the caller frees.
fem_status scene_class_create(scene_class **class, const scene_part *part, const fem_body *body, fem_mass_kind mass,
                              const char *cache, const fem_progress *progress, char **notes);
void       scene_class_destroy(scene_class *class);

// ---- cache files, of whole parts and of domains -------------------------------------------------------------------

// FOLDER/NAME-HASH.class; the folder and those above it are made. Caller frees.
fem_status scene_cache_path(char **path, const char *folder, const char *name, fem_hash key);
fem_status scene_class_write(const modes_basis *basis, const cubature_polynomial *polynomial, fem_hash key,
                             const char *path);
// The polynomial gets the materials of the mesh. FEM_IO when there is no such file, FEM_BAD_INPUT when it is not the
// class of this mesh.
fem_status scene_class_read(modes_basis *basis, cubature_polynomial *polynomial, const fem_mesh *mesh,
                            bool has_polynomial, fem_hash key, const char *path);
fem_status scene_add_note(char **notes, const char *text); // a line of text

#endif
