// Inside libscene only: what the parts of the .glb writer share.
//
// The file is planned whole before it is written: views and accessors get their places in the order in which the data
// are written later, and the JSON in front of the data is made from the plan.
#ifndef LIMBER_GLB_INTERNAL_H
#define LIMBER_GLB_INTERNAL_H

#include "libscene/animation.h"
#include "libscene/text.h"

#include <stdint.h>

// glTF's names for numbers
enum { GLTF_BYTE = 5120, GLTF_UBYTE, GLTF_SHORT, GLTF_USHORT, GLTF_UINT = 5125, GLTF_FLOAT };
enum { GLTF_VERTICES = 34962, GLTF_INDICES = 34963 };
#define GLB_MAGIC      0x46546c67u // "glTF"
#define GLB_CHUNK_JSON 0x4e4f534au
#define GLB_CHUNK_BIN  0x004e4942u

// ---- quaternions (x, y, z, w) (glb_rotation.c) ------------------------------------------------------------------

void quaternion_from_matrix(double q[4], const double R[9]); // of a rotation; unit length
void quaternion_to_matrix(double R[9], const double q[4]);   // of any length but zero
// Four signed 16-bit numbers, c / 32767 each: the nearest to q.
void quaternion_pack(int16_t packed[4], const double q[4]);
void quaternion_unpack(double q[4], const int16_t packed[4]); // unit length

// ---- the plan ---------------------------------------------------------------------------------------------------

typedef struct glb_view {
    size_t offset, length; // in the binary chunk; offsets are multiples of 4
    int    stride, target; // 0: none is given
} glb_view;

typedef struct glb_accessor {
    int         view;
    size_t      offset, count; // bytes from the beginning of the view; elements
    int         component;     // GLTF_FLOAT, ...
    bool        normalized;
    const char *type;   // "VEC3"
    int         bounds; // numbers in low and high: 0, 1 or 3
    float       low[3], high[3];
} glb_accessor;

// The surface of a class as it goes into the file, for the ranges of q that the frames have.
typedef struct glb_mesh {
    int    targets;      // modes that are kept
    int   *mode;         // per target: its mode
    float *q_low, *q_up; // per target: range of the mode
    int    indices;      // first accessor of indices, one per patch
    int    positions, normals, uv;
    int    joints, skin_weights; // of a skin
    int    deltas;               // first of two accessors per target: positions, normals
} glb_mesh;

// All figures as one mesh (glb_skin.c).
typedef struct glb_skin {
    int           vertex_count, triangle_count, patch_count;
    double       *positions, *uv; // in the first frame, axes and units of the file
    int          *place;          // as of a scene_surface, or NULL
    int          *triangles;
    scene_patch  *patches;
    int          *first;   // per figure: its first vertex; then their number
    uint16_t     *joints;  // 4 per vertex
    float        *weights; // likewise
    float        *inverse; // 16 per figure: inverse bind matrices
    double        error;
    scene_surface surface; // of these
    glb_mesh      mesh;
    int           inverse_accessor;
} glb_skin;

// A growing plan of the file.
typedef struct glb_plan {
    size_t        bytes; // of the binary chunk so far
    int           view_count, accessor_count;
    size_t        view_room, accessor_room;
    glb_view     *views;
    glb_accessor *accessors;
} glb_plan;
// Adds a view of so many bytes behind what there is; an accessor into the last view. Both give their number.
fem_status glb_plan_view(glb_plan *plan, size_t bytes, int stride, int target, int *view);
fem_status glb_plan_accessor(glb_plan *plan, const glb_accessor *accessor, int *number);
void       glb_plan_destroy(glb_plan *plan);

// ---- one surface in numbers (glb_surface.c) -----------------------------------------------------------------------

// Base shape X + U q_low of the kept modes (those left out stand at the middle of their range), its unit normals, and
// per target the change of both when its weight goes from 0 to 1. Positions and normals: 3 per vertex.
typedef struct glb_form {
    float *positions, *normals;
    float *deltas; // per target: 3 vertex_count of positions, then as many of normals
} glb_form;
// low, high: range of every mode of the surface.
fem_status glb_form_create(glb_form *form, const scene_surface *surface, const glb_mesh *mesh, const float *low,
                           const float *high);
void       glb_form_destroy(glb_form *form);
// Largest distance that a mode of amplitude 1 moves a vertex.
double glb_mode_size(const scene_surface *surface, int mode);
// Half the diagonal of the box around the surface.
double glb_surface_size(const scene_surface *surface);

// ---- the writer ---------------------------------------------------------------------------------------------------

// In the spool a frame is: for each surface in turn, of all its figures, the translations (3 floats each), then the
// rotations (4 packed numbers each), then q (r floats each).
typedef struct glb_group { // the figures of one surface
    int    count;
    int   *figures;                    // ascending
    size_t translations, rotations, q; // bytes from the beginning of a frame
    float *low, *high;                 // range of every mode over all figures and frames
} glb_group;

struct scene_glb {
    char                *path;
    scene_glb_options    options;
    int                  look_count, surface_count, figure_count;
    const scene_look    *looks;
    const scene_surface *surfaces;
    const scene_figure  *figures;
    glb_group           *groups;    // per surface
    size_t              *q_start;   // per figure: in the q of scene_glb_frame
    int                 *place;     // per figure: its place in its group
    int                  spool;     // file descriptor
    size_t               row_bytes; // of a frame in the spool
    char                *row, *first_row;
    bool                *moves;  // per figure: translation changes; then per figure: rotation changes
    double              *last;   // per figure: quaternion of the last frame
    double              *boxes;  // per surface: low and high of the rest shape (6), then low and high of each mode
    size_t              *box_at; // per surface: in boxes
    int                  frames;
    size_t               times_room, bounds_room;
    float               *times;
    float               *bounds; // per frame: low, high
    // while the file is written
    fem_file *file;
    size_t    written; // bytes of the binary chunk
    glb_plan  plan;
    glb_mesh *meshes;   // per surface
    glb_skin  skin;     // empty: none is wanted
    int       time;     // accessor
    int      *channels; // per figure: accessors of translation, rotation, weights; -1: constant
    int       bounds_accessor;
};

// A frame of the spool, whole or a part of it.
fem_status glb_spool_read(const scene_glb *glb, int frame, size_t offset, size_t bytes, void *to);
// Bytes of the binary chunk; begins each view on its place.
fem_status glb_begin_view(scene_glb *glb, int view);
void       glb_put(scene_glb *glb, const void *bytes, size_t size);
// The skin, from the spool; its places in the plan, behind those of its mesh; its numbers (glb_skin.c).
fem_status glb_skin_check(const scene_glb *glb);
fem_status glb_skin_create(scene_glb *glb);
fem_status glb_skin_plan(scene_glb *glb);
fem_status glb_skin_put(scene_glb *glb);
void       glb_skin_destroy(glb_skin *skin);
// Text of the JSON chunk (glb_json.c).
fem_status  glb_json(scene_glb *glb, scene_text *text);
const char *glb_figure_name(const scene_glb *glb, int figure, char *buffer, size_t size);

#endif
