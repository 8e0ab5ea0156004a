// Obstacles of a scene: where they are, and how they move.
#include "libscene/internal.h"

#include <string.h>

fem_status scene_read_obstacle(scene_reader *reader, const cJSON *node, scene_obstacle *obstacle) {
    fem_status   status = FEM_OK;
    raw_obstacle raw = {0};
    FEM_TRY(reader_table(reader, node, &scene_obstacle_table, &raw));
    if (raw.variant == SOLVER_PLANE) {
        if (!(vec3_norm(raw.plane.normal) > 0)) {
            reader_enter(reader, "plane.normal");
            return reader_fail(reader, cJSON_GetObjectItemCaseSensitive(node, "plane"),
                               "is zero, expected a direction");
        }
        obstacle->shape = solver_plane(raw.plane.point, raw.plane.normal);
    } else if (raw.variant == SOLVER_BOX) {
        double half[3];
        for (int i = 0; i < 3; i++) half[i] = raw.box.size[i] / 2;
        obstacle->shape = solver_box(raw.box.centre, half);
        mat3_exp(obstacle->shape.axes, raw.box.rotation);
    } else {
        obstacle->shape = solver_sphere(raw.sphere.centre, raw.sphere.radius);
    }
    memcpy(obstacle->move.centre, obstacle->shape.position, sizeof obstacle->move.centre);
    obstacle->move.smooth = raw.interpolation == 1;
    if (raw.keyframes) FEM_TRY(scene_read_keyframes(reader, raw.keyframes, true, &obstacle->move));
done:
    return status;
}
