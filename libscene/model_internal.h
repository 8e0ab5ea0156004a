// Inside libscene only: a .glb file in memory.
#ifndef LIMBER_MODEL_INTERNAL_H
#define LIMBER_MODEL_INTERNAL_H

#include "libscene/model.h"

// Numbers of the binary chunk, checked to lie inside it.
typedef struct model_accessor {
    const unsigned char *data; // NULL: zeros
    size_t               stride, count;
    int                  component, width; // GLTF_FLOAT, ...; numbers an element
    bool                 normalized;
} model_accessor;

double model_number(const model_accessor *a, size_t element, int k);

typedef struct model_primitive {
    int    vertex_count, triangle_count, target_count;
    float *positions, *normals, *uv; // uv may be NULL
    float *deltas;                   // per target: positions, then normals, 3 per vertex each
    int   *triangles;
    int    paint;
    int   *joints;  // 4 per vertex, or NULL
    float *weights; // 4 per vertex
} model_primitive;

typedef struct model_mesh {
    int              primitive_count, target_count;
    model_primitive *primitives;
    double          *weights; // per target: the mesh's own
} model_mesh;

typedef struct model_node {
    char   *name;
    int     parent, mesh, skin;
    bool    has_matrix;
    double  matrix[16]; // column-major, as in the file
    double  translation[3], rotation[4], scale[3];
    double *weights; // per target of its mesh, or NULL
    int     first_vertex, vertex_count;
} model_node;

typedef struct model_skin {
    int     joint_count;
    int    *joints;
    double *inverse;    // 12 per joint: rows of 3 x 4
    double *transforms; // 12 per joint at the time of the pose: of the joint times that
} model_skin;

enum { MODEL_TRANSLATION, MODEL_ROTATION, MODEL_SCALE, MODEL_WEIGHTS };
enum { MODEL_LINEAR, MODEL_STEP, MODEL_CUBIC };
typedef struct model_channel {
    int            node, path, interpolation;
    model_accessor input, output;
} model_channel;

struct scene_model {
    char          *path;
    char          *memory; // the file
    int            mesh_count, node_count, skin_count, channel_count;
    model_mesh    *meshes;
    model_node    *nodes;
    int           *order; // nodes, parents before children
    model_skin    *skins;
    model_channel *channels;
    double         begin, end;
    double         stored; // bytes of vertices that were read; one accessor may be used often
    double        *world;  // 12 per node: rows of 3 x 4
    double        *morph;  // weights of all nodes at the time of the pose
    size_t        *morph_at;
    scene_drawing  drawing;
};

enum { MODEL_MOST_VERTICES = 100000000 };

// PNG and nothing else; FEM_BAD_INPUT otherwise.
fem_status model_image_read(scene_image *image, const void *bytes, size_t size);

#endif
